{{/* Whether the values ask for this object: "yes" or nothing. Arguments: object, values. */}}
{{- define "cronjob-controller.wanted" -}}
{{- $unwanted := list }}
{{- if not .values.namespace.create }}{{ $unwanted = append $unwanted "Namespace" }}{{ end }}
{{- if not .values.resourceQuota }}{{ $unwanted = append $unwanted "ResourceQuota" }}{{ end }}
{{- if not .values.podDisruptionBudget }}{{ $unwanted = append $unwanted "PodDisruptionBudget" }}{{ end }}
{{- if not .values.networkPolicy.create }}{{ $unwanted = append $unwanted "NetworkPolicy" }}{{ end }}
{{- if not .values.flowControl }}{{ $unwanted = concat $unwanted (list "FlowSchema" "PriorityLevelConfiguration") }}{{ end }}
{{- if not .values.dashboard }}{{ $unwanted = append $unwanted "ConfigMap" }}{{ end }}
{{- if not (has .object.kind $unwanted) }}yes{{ end }}
{{- end }}

{{/* Changes an object as the values say. Each field that a value does not mention stays as it is in manifests/. Arguments:
object, values, chart, namespace (the release's), instance. */}}
{{- define "cronjob-controller.adjust" -}}
{{- $values := .values }}
{{- with $values.commonLabels }}{{ $_ := set $.object.metadata "labels" (merge (deepCopy .) ($.object.metadata.labels | default dict)) }}{{ end }}
{{- if eq .object.kind "Deployment" }}{{ include "cronjob-controller.deployment" . }}{{ end }}
{{- if eq .object.kind "NetworkPolicy" }}{{ include "cronjob-controller.networkPolicy" . }}{{ end }}
{{- if and (eq .object.kind "CustomResourceDefinition") $values.crds.keep }}
{{- $_ := set .object.metadata "annotations" (merge (dict "helm.sh/resource-policy" "keep") (.object.metadata.annotations | default dict)) }}
{{- end }}
{{- if and (eq .object.kind "ServiceAccount") (hasPrefix "cronjob-controller" .object.metadata.name) }}
{{- with $values.serviceAccountAnnotations }}{{ $_ := set $.object.metadata "annotations" . }}{{ end }}
{{- end }}
{{- if and (eq .object.kind "ClusterRoleBinding") (eq .object.metadata.name "cronjob-controller-metrics-reader") }}
{{- range .object.subjects }}{{ $_ := set . "name" $values.prometheus.serviceAccount.name }}{{ $_ := set . "namespace" $values.prometheus.serviceAccount.namespace }}{{ end }}
{{- end }}
{{- if and (has $values.mode (list "single-namespace" "instance")) (has .object.kind (list "ValidatingAdmissionPolicy" "ValidatingAdmissionPolicyBinding" "ClusterRoleBinding")) (has .object.metadata.name (list "cronjob-controller-jobs" "cronjob-controller-status" "cronjob-controller-metrics-reader")) }}
{{- /* A cluster may have several releases of these modes, and these objects have no namespace. */}}
{{- $_ := set .object.metadata "name" (printf "%s-%s" .object.metadata.name (ternary .instance .namespace (eq $values.mode "instance"))) }}
{{- if eq .object.kind "ValidatingAdmissionPolicyBinding" }}{{ $_ := set .object.spec "policyName" .object.metadata.name }}{{ end }}
{{- end }}
{{- if and (eq .object.kind "ValidatingAdmissionPolicyBinding") (eq .object.metadata.name "cronjob-controller-annotation-values") }}
{{- $_ := set .object.spec "validationActions" (list $values.policiesAction) }}
{{- end }}
{{- if and (eq .object.kind "PrometheusRule") $values.prometheus.runbookURL }}
{{- range .object.spec.groups }}{{ range .rules }}{{ if .annotations }}
{{- $_ := set .annotations "runbook_url" (printf "%s#%s" $values.prometheus.runbookURL (.annotations.runbook_url | splitList "#" | last)) }}
{{- end }}{{ end }}{{ end }}
{{- end }}
{{- end }}

{{/* The name of the image. Arguments: values, chart. */}}
{{- define "cronjob-controller.image" -}}
{{- $image := .values.image }}
{{- $tag := $image.tag | default (printf "v%s" .chart.AppVersion) }}
{{- ternary (printf "%s@%s" $image.repository $image.digest) (printf "%s:%s" $image.repository $tag) (ne $image.digest "") }}
{{- end }}

{{- define "cronjob-controller.deployment" -}}
{{- $values := .values }}
{{- $spec := .object.spec }}
{{- $pod := $spec.template.spec }}
{{- $container := index $pod.containers 0 }}
{{- if not (kindIs "invalid" $values.replicas) }}{{ $_ := set $spec "replicas" $values.replicas }}{{ end }}
{{- $_ := set $container "image" (include "cronjob-controller.image" .) }}
{{- $_ := set $container "imagePullPolicy" $values.image.pullPolicy }}
{{- $args := list }}
{{- range $container.args }}
{{- if eq "-v=2" . }}{{ $args = append $args (printf "-v=%d" (int $values.verbosity)) }}
{{- else }}{{ $args = append $args . }}{{ end }}
{{- end }}
{{- with $values.namespaces }}{{ $args = append $args (printf "--namespace=%s" (join "," .)) }}{{ end }}
{{- with $values.cronjobMetrics }}{{ $args = append $args (printf "--cronjob-metrics=%d" (int .)) }}{{ end }}
{{- $_ := set $container "args" (concat $args $values.extraArgs) }}
{{- range $container.env }}{{ if eq .name "TZ" }}{{ $_ := set . "value" $values.timeZone }}{{ end }}{{ end }}
{{- if not (kindIs "invalid" $values.resources) }}{{ $_ := set $container "resources" $values.resources }}{{ end }}
{{- if not (kindIs "invalid" $values.priorityClassName) }}
{{- if $values.priorityClassName }}{{ $_ := set $pod "priorityClassName" $values.priorityClassName }}{{ else }}{{ $_ := unset $pod "priorityClassName" }}{{ end }}
{{- end }}
{{- range $field := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" }}
{{- with index $values $field }}{{ $_ := set $pod $field . }}{{ end }}
{{- end }}
{{- $metadata := $spec.template.metadata }}
{{- with $values.podAnnotations }}{{ $_ := set $metadata "annotations" (merge (deepCopy .) ($metadata.annotations | default dict)) }}{{ end }}
{{- with $values.podLabels }}{{ $_ := set $metadata "labels" (merge (deepCopy $metadata.labels) .) }}{{ end }}
{{- end }}

{{- define "cronjob-controller.networkPolicy" -}}
{{- $policy := .values.networkPolicy }}
{{- with $policy.metricsFrom }}
{{- $metrics := list }}{{ $others := list }}
{{- range (index $.object.spec.ingress 0).ports }}
{{- if has .port (list "https" "metrics") }}{{ $metrics = append $metrics . }}{{ else }}{{ $others = append $others . }}{{ end }}
{{- end }}
{{- $_ := set $.object.spec "ingress" (list (dict "ports" $metrics "from" .) (dict "ports" $others)) }}
{{- end }}
{{- $ports := list }}
{{- range $policy.apiServerPorts }}{{ $ports = append $ports (dict "port" . "protocol" "TCP") }}{{ end }}
{{- $egress := dict "ports" $ports }}
{{- with $policy.apiServerCIDRs }}
{{- $to := list }}
{{- range . }}{{ $to = append $to (dict "ipBlock" (dict "cidr" .)) }}{{ end }}
{{- $_ := set $egress "to" $to }}
{{- end }}
{{- $_ := set .object.spec "egress" (list $egress) }}
{{- end }}
