{{- define "worker.name" -}}{{ .Release.Name }}{{- end -}}
