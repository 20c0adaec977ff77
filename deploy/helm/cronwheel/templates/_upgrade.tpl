{{- /* Fails an upgrade that would stop every CronJob of the installation: the running replicas work in other namespaces, and
no namespace has the label by which the new ones select theirs. */}}
{{- define "cronwheel.upgradeGuard" -}}
{{- $label := include "cronwheel.managedLabel" . }}
{{- if and $label (include "cronwheel.isScopeChanged" .) }}
{{- if not (include "cronwheel.isLabelInUse" (list $label (lookup "v1" "Namespace" "" "").items)) }}
{{- fail (printf "after this upgrade no CronJob would run: the running replicas of this release work in other namespaces, and no namespace has the label %s. Either label the namespaces of this release before the upgrade: kubectl label namespace NAMESPACE %s. Or keep all namespaces: --set managedNamespaces.all=true" $label (include "cronwheel.labelToSet" $label)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether an upgrade replaces replicas that work in other namespaces than those of the selector; empty if not. Without a
cluster, as for `helm template`, it is never true. Objects must not depend on it: tools render the chart without a cluster. */}}
{{- define "cronwheel.isScopeChanged" -}}
{{- $selector := include "cronwheel.namespaces" . }}
{{- if and .Release.IsUpgrade $selector (not .Values.controller.namespaces) }}
{{- with lookup "apps/v1" "Deployment" .Release.Namespace (include "cronwheel.fullname" .) }}
{{- $container := first .spec.template.spec.containers }}
{{- if not (has (printf "--namespace-selector=%s" $selector) (default list $container.args)) -}}
true
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether a namespace in the list after the label has this label; empty if none has. Without a value, any value counts. */}}
{{- define "cronwheel.isLabelInUse" -}}
{{- $label := first . }}
{{- $pair := splitn "=" 2 $label }}
{{- range last . }}
{{- $labels := default dict .metadata.labels }}
{{- if and (hasKey $labels $pair._0) (or (not (contains "=" $label)) (eq (get $labels $pair._0) $pair._1)) -}}
true
{{- end }}
{{- end }}
{{- end }}
