// Command gotypes prints how Kubernetes' Go types for the kinds of the embedded API server are written as JSON: every
// field with its type, when it is left out, and its key in strategic merge patches. The output is
// crates/apiserver/src/kinds/types.json:
//
//	go run ./gotypes > ../../crates/apiserver/src/kinds/types.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// special are the types with a JSON form of their own.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():        "time",
	reflect.TypeFor[metav1.MicroTime]():   "microtime",
	reflect.TypeFor[metav1.FieldsV1]():    "any",
	reflect.TypeFor[resource.Quantity]():  "quantity",
	reflect.TypeFor[intstr.IntOrString](): "intorstring",
	reflect.TypeFor[[]byte]():             "bytes",
	// On the wire it is as FieldsV1: a message whose first field is the JSON text.
	reflect.TypeFor[apiextensionsv1.JSON](): "any",
}

// field is [type, flags, merge key, name of the embedded struct it comes from, protobuf field number; the numbers of embedded
// structs come first, with dots]. Flags: o omitempty, z omitzero, p pointer, m patchStrategy merge.
type field []string

var types = map[string]map[string]field{}

func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return parts[len(parts)-2] + "." + parts[len(parts)-1] + "." + t.Name()
}

// describe names a type: a scalar, "[]" or "{}" before an element, or a struct's name. A pointer element has "*".
func describe(t reflect.Type) string {
	if s, ok := special[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + describe(t.Elem())
	case reflect.Slice:
		return "[]" + describe(t.Elem())
	case reflect.Map:
		return "{}" + describe(t.Elem())
	case reflect.Struct:
		visit(t)
		return name(t)
	case reflect.String:
		// Go names a named type in its errors.
		if t.Name() != "string" {
			parts := strings.Split(t.PkgPath(), "/")
			return "string:" + parts[len(parts)-1] + "." + t.Name()
		}
		return "string"
	default:
		return t.Kind().String()
	}
}

func visit(t reflect.Type) {
	if _, done := types[name(t)]; done {
		return
	}
	fields := map[string]field{}
	types[name(t)] = fields
	collect(t, fields, "", "")
}

// number is the protobuf field number, the second part of the tag; TypeMeta has none.
func number(f reflect.StructField) string {
	_, rest, _ := strings.Cut(f.Tag.Get("protobuf"), ",")
	n, _, _ := strings.Cut(rest, ",")
	return n
}

func collect(t reflect.Type, fields map[string]field, embedded, numbers string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" {
			continue
		}
		if tag == "" && f.Anonymous {
			collect(f.Type, fields, f.Name, numbers+number(f)+".")
			continue
		}
		// The alternatives of a schema (JSONSchemaPropsOrBool and its like) have no names in JSON, but numbers on the wire.
		if _, names, found := strings.Cut(f.Tag.Get("protobuf"), "name="); tag == "" && found {
			tag, _, _ = strings.Cut(names, ",")
		}
		if tag == "" {
			panic(fmt.Sprintf("%s.%s has no JSON name", t, f.Name))
		}
		flags, ft := "", f.Type
		for _, option := range strings.Split(options, ",") {
			switch option {
			case "omitempty":
				flags += "o"
			case "omitzero":
				flags += "z"
			}
		}
		if ft.Kind() == reflect.Pointer {
			flags, ft = flags+"p", ft.Elem()
		}
		strategy, key := f.Tag.Get("patchStrategy"), f.Tag.Get("patchMergeKey")
		if strings.Contains(strategy, "merge") {
			flags += "m"
		}
		if strings.Contains(strategy, "retainKeys") {
			flags += "r"
		}
		entry := field{describe(ft), flags, key, embedded, numbers + number(f)}
		for len(entry) > 1 && entry[len(entry)-1] == "" {
			entry = entry[:len(entry)-1]
		}
		fields[tag] = entry
	}
}

func main() {
	for _, object := range []any{
		batchv1.CronJob{}, batchv1.Job{}, corev1.Pod{}, corev1.Namespace{}, corev1.Event{}, coordinationv1.Lease{},
		authenticationv1.TokenReview{}, authenticationv1.SelfSubjectReview{}, authorizationv1.SubjectAccessReview{},
		authorizationv1.SelfSubjectAccessReview{}, authorizationv1.LocalSubjectAccessReview{},
		authorizationv1.SelfSubjectRulesReview{}, metav1.DeleteOptions{},
		admissionregistrationv1.MutatingWebhookConfiguration{}, admissionregistrationv1.ValidatingWebhookConfiguration{},
		admissionregistrationv1.ValidatingAdmissionPolicy{}, admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		admissionregistrationv1.MutatingAdmissionPolicy{}, admissionregistrationv1.MutatingAdmissionPolicyBinding{},
		appsv1.Deployment{}, corev1.ConfigMap{}, corev1.ResourceQuota{}, corev1.Secret{}, corev1.Service{},
		corev1.ServiceAccount{}, flowcontrolv1.FlowSchema{}, flowcontrolv1.PriorityLevelConfiguration{},
		networkingv1.NetworkPolicy{}, policyv1.PodDisruptionBudget{}, rbacv1.ClusterRole{}, rbacv1.ClusterRoleBinding{},
		rbacv1.Role{}, rbacv1.RoleBinding{}, appsv1.DaemonSet{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{},
		autoscalingv2.HorizontalPodAutoscaler{}, corev1.PersistentVolumeClaim{}, corev1.PodTemplate{}, networkingv1.Ingress{},
		apiextensionsv1.CustomResourceDefinition{},
	} {
		visit(reflect.TypeOf(object))
	}
	names := make([]string, 0, len(types))
	for n := range types {
		names = append(names, n)
	}
	sort.Strings(names)
	// One line per type, so that a version change gives a readable diff.
	fmt.Println("{")
	for i, n := range names {
		fields, err := json.Marshal(types[n])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Printf("%q: %s%s\n", n, fields, comma)
	}
	fmt.Println("}")
}
