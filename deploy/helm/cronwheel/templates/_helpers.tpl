{{- define "cronwheel.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "cronwheel.fullname" -}}
{{- $name := include "cronwheel.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "cronwheel.selectorLabels" -}}
app.kubernetes.io/name: {{ include "cronwheel.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cronwheel.labels" -}}
{{ include "cronwheel.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
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
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "cronwheel.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "cronwheel.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
