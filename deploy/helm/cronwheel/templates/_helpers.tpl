{{- define "cronwheel.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- /* A release name that begins with a digit comes last, because the name of a Service begins with a letter. */}}
{{- define "cronwheel.fullname" -}}
{{- $name := include "cronwheel.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if regexMatch "^[0-9]" .Release.Name }}
{{- printf "%s-%s" $name .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* toYaml quotes a name that YAML would read as a number or a boolean, such as 2024. */}}
{{- define "cronwheel.selectorLabels" -}}
app.kubernetes.io/name: {{ include "cronwheel.name" . | toYaml }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end }}

{{- /* The labels of an object: those of the chart by name, the common ones, and those of each map in the rest of the list,
which win. Nothing replaces those of the chart, by which objects select each other. */}}
{{- define "cronwheel.labelsWith" -}}
{{- $own := include (index . 1) (first .) | trim }}
{{- $more := deepCopy (default dict (first .).Values.commonLabels) }}
{{- range slice . 2 }}
{{- $more = mergeOverwrite $more (deepCopy (default dict .)) }}
{{- end }}
{{- range $key, $_ := fromYaml $own }}
{{- $_ := unset $more $key }}
{{- end }}
{{- $own }}
{{- with $more }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The labels about the chart, apart from those that select. */}}
{{- define "cronwheel.chartLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "cronwheel.ownLabels" -}}
{{ include "cronwheel.selectorLabels" . }}
{{ include "cronwheel.chartLabels" . }}
{{- end }}

{{- define "cronwheel.labels" -}}
{{- include "cronwheel.labelsWith" (list . "cronwheel.ownLabels") }}
{{- end }}

{{- /* The annotations of an object: the common ones, and those of each map in the list after the context, which win. */}}
{{- define "cronwheel.annotations" -}}
{{- $all := deepCopy (default dict (first .).Values.commonAnnotations) }}
{{- range rest . }}
{{- $all = mergeOverwrite $all (deepCopy (default dict .)) }}
{{- end }}
{{- with $all -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "cronwheel.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "cronwheel.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "cronwheel.leaseNamespace" -}}
{{- default .Release.Namespace .Values.controller.leaseNamespace }}
{{- end }}

{{- /* Kubernetes reserves names that begin with system- for its own classes. */}}
{{- define "cronwheel.priorityClassName" -}}
{{- $name := .Values.priorityClass.name }}
{{- if and .Values.priorityClass.create (or (not $name) (hasPrefix "system-" $name)) }}
{{- include "cronwheel.fullname" . }}
{{- else }}
{{- $name }}
{{- end }}
{{- end }}

{{- define "cronwheel.image" -}}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry }}
{{- $repository := .Values.image.repository }}
{{- with $registry }}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository }}
{{- end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- /* The settings that the Pods of the replicas and of the page share. */}}
{{- define "cronwheel.podSettings" -}}
{{- $secrets := list }}
{{- range concat (default list .Values.imagePullSecrets) (default list .Values.global.imagePullSecrets) }}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) }}
{{- end }}
{{- with uniq $secrets }}
imagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- if and (eq (default "" .Values.dnsPolicy) "None") (not (dig "nameservers" list (default dict .Values.dnsConfig))) }}
{{- fail "dnsPolicy None needs nameservers: set dnsConfig.nameservers, or another dnsPolicy" }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "cronwheel.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "cronwheel.serviceAccountName" . | toYaml }}
  namespace: {{ .Release.Namespace | toYaml }}
{{- end }}

{{- /* The namespaces to work in as a label selector, in the syntax of kubectl; empty for all. The bound is that of the
program, which would not start. */}}
{{- define "cronwheel.namespaces" -}}
{{- $bytesMax := 16384 }}
{{- $name := "kubernetes.io/metadata.name" }}
{{- with .Values.controller.namespaces }}
{{- printf "%s in (%s)" $name (join "," .) }}
{{- else }}
{{- $requirements := list }}
{{- if not .Values.managedNamespaces.all }}
{{- $requirements = append $requirements .Values.managedNamespaces.selector }}
{{- end }}
{{- with .Values.managedNamespaces.exclude }}
{{- $requirements = append $requirements (printf "%s notin (%s)" $name (join "," .)) }}
{{- end }}
{{- $selector := join "," $requirements }}
{{- if gt (len $selector) $bytesMax }}
{{- fail (printf "managedNamespaces.selector and managedNamespaces.exclude make a label selector of %d bytes, and cronwheel takes at most %d: select by a label that the other namespaces lack, instead of naming these in managedNamespaces.exclude" (len $selector) $bytesMax) }}
{{- end }}
{{- $selector }}
{{- end }}
{{- end }}

{{- /* A label selector in the syntax of kubectl as the list `matchExpressions`. */}}
{{- define "cronwheel.matchExpressions" -}}
{{- $isSet := "^(\\S+)\\s+(in|notin)\\s*\\((.*)\\)$" }}
{{- $isEqual := "^([^=!\\s]+)\\s*(==?|!=)\\s*(\\S*)$" }}
{{- range regexFindAll "[^,(]+(\\([^)]*\\))?" . -1 }}
{{- $requirement := trim . }}
{{- if or (regexMatch $isSet $requirement) (regexMatch $isEqual $requirement) }}
{{- $form := regexMatch $isSet $requirement | ternary $isSet $isEqual }}
{{- $operator := regexReplaceAll $form $requirement "${2}" }}
- key: {{ regexReplaceAll $form $requirement "${1}" }}
  operator: {{ has $operator (list "notin" "!=") | ternary "NotIn" "In" }}
  values:
  {{- range splitList "," (regexReplaceAll $form $requirement "${3}") }}
  - {{ trim . | quote }}
  {{- end }}
{{- else }}
- key: {{ trimPrefix "!" $requirement | trim }}
  operator: {{ hasPrefix "!" $requirement | ternary "DoesNotExist" "Exists" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The label that makes a namespace match, as `KEY=VALUE`, or as `KEY` if any value does; empty if no single label does, or
if nobody can set it. */}}
{{- define "cronwheel.managedLabel" -}}
{{- if not (or .Values.controller.namespaces .Values.managedNamespaces.all (include "cronwheel.selectsByName" .)) }}
{{- regexFind "^[^!=, ]+(=[^=, ]*)?$" .Values.managedNamespaces.selector }}
{{- end }}
{{- end }}

{{- /* A label as `kubectl label` sets it. */}}
{{- define "cronwheel.labelToSet" -}}
{{- contains "=" . | ternary . (printf "%s=true" .) }}
{{- end }}

{{- /* Whether the selector is only about the label that the API server sets to the name of a namespace; empty if not. */}}
{{- define "cronwheel.selectsByName" -}}
{{- if regexMatch "^kubernetes\\.io/metadata\\.name( *[=!][^,]*| +(in|notin) *\\([^)]*\\))?$" .Values.managedNamespaces.selector -}}
true
{{- end }}
{{- end }}

{{- /* The Pod of `helm test` has another name, so that no object of the replicas selects it. */}}
{{- define "cronwheel.ownTestLabels" -}}
app.kubernetes.io/name: {{ include "cronwheel.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{ include "cronwheel.chartLabels" . }}
{{- end }}

{{- define "cronwheel.testLabels" -}}
{{- include "cronwheel.labelsWith" (list . "cronwheel.ownTestLabels") }}
{{- end }}

{{- define "cronwheel.uiFullname" -}}
{{- include "cronwheel.fullname" . }}-ui
{{- end }}

{{- /* The Pod of the page has another name, so that no object of the replicas selects it. */}}
{{- define "cronwheel.uiSelectorLabels" -}}
app.kubernetes.io/name: {{ include "cronwheel.name" . }}-ui
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end }}

{{- define "cronwheel.ownUiLabels" -}}
{{ include "cronwheel.uiSelectorLabels" . }}
{{ include "cronwheel.chartLabels" . }}
{{- end }}

{{- define "cronwheel.uiLabels" -}}
{{- include "cronwheel.labelsWith" (list . "cronwheel.ownUiLabels") }}
{{- end }}

{{- define "cronwheel.uiServiceAccountName" -}}
{{- if .Values.ui.serviceAccount.create }}
{{- default (include "cronwheel.uiFullname" .) .Values.ui.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.ui.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "cronwheel.uiSubjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "cronwheel.uiServiceAccountName" . | toYaml }}
  namespace: {{ .Release.Namespace | toYaml }}
{{- end }}

{{- /* The claim of the history; empty without one. */}}
{{- define "cronwheel.uiClaim" -}}
{{- if .Values.ui.history.existingClaim }}
{{- .Values.ui.history.existingClaim }}
{{- else if .Values.ui.history.persistentVolumeClaim.create }}
{{- include "cronwheel.uiFullname" . }}
{{- end }}
{{- end }}
