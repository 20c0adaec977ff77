{{- /* The flags of `cronwheel run` that values set, with the value of each. */}}
{{- define "cronwheel.flagsOfValues" -}}
-n: controller.namespaces
--namespace: controller.namespaces
--namespace-selector: managedNamespaces.selector
--listen: controller.listenAddress
--default-time-zone: controller.defaultTimeZone
--installation: controller.installation
--lease-namespace: controller.leaseNamespace
--max-inflight: controller.maxInflight
--max-template-memory: controller.maxTemplateMemory
--missed-runs-per-second: controller.missedRunsPerSecond
--freeze-until: controller.freezeUntil
--freeze-reason: controller.freezeReason
--calendars: calendars.enabled
--built-in-policy: builtInController.silence
--status-flush-interval: controller.statusFlushInterval
--events: controller.events
--max-events-per-second: controller.maxEventsPerSecond
--cron-job-metrics: controller.cronJobMetrics
--trouble-label: controller.troubleLabel
--log-runs: controller.logRuns
--max-clock-skew: controller.maxClockSkew
--log-format: controller.logFormat
--log-level: controller.logLevel
{{- end }}

{{- /* Fails if `controller.extraArgs` has a flag of a value: the program refuses most flags that come twice. */}}
{{- define "cronwheel.extraArgsGuard" -}}
{{- $flags := include "cronwheel.flagsOfValues" . | fromYaml }}
{{- $found := list }}
{{- range .Values.controller.extraArgs }}
{{- $flag := regexFind "^(--[-a-z]+|-[a-z])" . }}
{{- if hasKey $flags $flag }}
{{- $found = append $found (printf "%s (%s)" $flag (get $flags $flag)) }}
{{- end }}
{{- end }}
{{- with $found }}
{{- fail (printf "controller.extraArgs sets flags of other values: %s" (join ", " .)) }}
{{- end }}
{{- end }}
