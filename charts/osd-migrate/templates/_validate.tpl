{{/*
Checks of values, each with a sentence that says what is wrong and what to write. values.schema.json checks types, known values and
ranges of numbers: its messages are sentences already.
*/}}

{{/* Patterns of values. tests/suite/chart.rs reads them, too. */}}
{{- define "osd-migrate.pattern.window" -}}
^((?i:(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?(,(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?)*) )?([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$
{{- end }}

{{- define "osd-migrate.pattern.repository" -}}
([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]+)?/)?[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*
{{- end }}

{{- define "osd-migrate.pattern.tag" -}}
[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}
{{- end }}

{{- define "osd-migrate.pattern.digest" -}}
sha256:[0-9a-f]{64}
{{- end }}

{{- define "osd-migrate.pattern.label" -}}
[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?
{{- end }}

{{/* Labels that osd-migrate sets itself. */}}
{{- define "osd-migrate.pattern.ownLabel" -}}
^(app\.kubernetes\.io/(name|instance|version|component|part-of|managed-by)|helm\.sh/chart|osd-migrate\.io/.*|sidecar\.istio\.io/inject|linkerd\.io/inject)$
{{- end }}

{{/* A sentence about a value that does not match. list: name, value, pattern, sentence; true if the value must not be empty. */}}
{{- define "osd-migrate.wrong" -}}
{{- $value := index . 1 | toString -}}
{{- if and (or $value (gt (len .) 4)) (not (regexMatch (index . 2) $value)) }}
{{ index . 0 }}: {{ quote $value }} {{ index . 3 }}
{{- end }}
{{- end }}

{{/* Sentences about all wrong values, one a line. */}}
{{- define "osd-migrate.validate" -}}
{{- $repository := include "osd-migrate.pattern.repository" . -}}
{{- $tag := include "osd-migrate.pattern.tag" . -}}
{{- $digest := include "osd-migrate.pattern.digest" . -}}
{{- with .Values.image }}
{{- include "osd-migrate.wrong" (list "image.repository" .repository (printf "^%s$" $repository) "is not a repository. Write it without tag and digest, which are the values image.tag and image.digest: quay.io/example/osd-migrate") }}
{{- include "osd-migrate.wrong" (list "image.tag" .tag (printf "^%s$" $tag) "is not a tag. Write the tag alone, for example 0.1.0; a digest is the value image.digest") }}
{{- include "osd-migrate.wrong" (list "image.digest" .digest (printf "^%s$" $digest) "is not a digest. Write sha256: and 64 hexadecimal digits") }}
{{- end }}
{{- include "osd-migrate.wrong" (list "cephImage" .Values.cephImage (printf "^%s(:%s(@%s)?|@%s)$" $repository $tag $digest $digest) "is not an image with a tag or a digest. Write for example quay.io/ceph/ceph:v18.2.7") }}
{{- include "osd-migrate.validate.names" . }}
{{- include "osd-migrate.validate.labels" . }}
{{- with .Values.run }}
{{- range $name := list "select" "skip" }}
{{- range $index, $osd := index $.Values.run $name }}
{{- include "osd-migrate.wrong" (list (printf "run.%s[%d]" $name $index) $osd "^(osd\\.)?[0-9]+(-(osd\\.)?[0-9]+)?$" "is not an OSD. Write osd.1 or 1, or a range: osd.1-osd.5") }}
{{- end }}
{{- end }}
{{- include "osd-migrate.wrong" (list "run.approve" .approve "^[0-9a-f]{16}$" "is not the hash of a plan. Write the 16 hexadecimal digits that plan prints") }}
{{- range $index, $host := .hosts }}
{{- include "osd-migrate.wrong" (list (printf "run.hosts[%d]" $index) $host "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$" "is not the name of a host. Write it as ceph osd tree prints it" true) }}
{{- end }}
{{- range $index, $class := .deviceClasses }}
{{- include "osd-migrate.wrong" (list (printf "run.deviceClasses[%d]" $index) $class "^[-A-Za-z0-9_.]+$" "is not a device class. Write for example hdd or ssd" true) }}
{{- end }}
{{- range $index, $window := .windows }}
{{- include "osd-migrate.wrong" (list (printf "run.windows[%d]" $index) $window (include "osd-migrate.pattern.window" .) "is not a window. Write HH:MM-HH:MM, with weekdays before it if the window is not daily: \"22:00-05:00\", \"Mon-Fri 22:00-05:00\", \"Sat,Sun 00:00-24:00\"" true) }}
{{- $ends := splitList "-" (last (splitList " " $window)) }}
{{- if and (eq (len $ends) 2) (eq (first $ends) (last $ends)) }}
run.windows[{{ $index }}]: the window {{ quote $window }} ends when it begins. For a whole day, write 00:00-24:00
{{- end }}
{{- end }}
{{- range $name := list "dropDirectories" "removeOut" }}
{{- if and (index $.Values.run $name) (not $.Values.remove.enabled) }}
run.{{ $name }}: it removes OSDs, and remove.enabled is false. Set remove.enabled=true as well
{{- end }}
{{- end }}
{{- if kindIs "string" .inParallel }}
{{- include "osd-migrate.wrong" (list "run.inParallel" .inParallel "^([1-9][0-9]?|100)%$" "is not a share of the data. Write a number of OSDs, or for example 5%" true) }}
{{- end }}
{{- with .maxCommitLatency }}
{{- include "osd-migrate.wrong" (list "run.maxCommitLatency" . "^[1-9][0-9]{0,3}ms$" "is not a time of 1ms to 9999ms. Write for example 50ms" true) }}
{{- end }}
{{- range $name, $least := dict "startLimit" 30 "nooutLimit" 30 "agentRetryPause" 1 "skipAfter" 0 "soak" 0 }}
{{- $time := index $.Values.run $name | toString }}
{{- $seconds := -1 }}
{{- if regexMatch "^(0|[1-9][0-9]{0,4})[smh]$" $time }}
{{- $seconds = mul (regexFind "^[0-9]+" $time) (index (dict "s" 1 "m" 60 "h" 3600) (regexFind "[smh]$" $time)) }}
{{- end }}
{{- if or (lt (int $seconds) $least) (gt (int $seconds) 86400) }}
run.{{ $name }}: {{ quote $time }} is not a time from {{ $least }}s to 24h. Write for example 90s, 15m or 1h
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.validation.enabled (semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version) }}
validation.enabled: it is true, and this is Kubernetes {{ .Capabilities.KubeVersion.Version }}. A ValidatingAdmissionPolicy needs 1.30: --set validation.enabled=false
{{- end }}
{{- include "osd-migrate.validate.telemetry" . }}
{{- include "osd-migrate.validate.schedule" . }}
{{- include "osd-migrate.validate.timeZone" . }}
{{- range $kind := list "requests" "limits" }}
{{- range $name, $quantity := index $.Values.resources $kind }}
{{- if kindIs "string" $quantity }}
{{- include "osd-migrate.wrong" (list (printf "resources.%s.%s" $kind $name) $quantity "^[0-9]+(\\.[0-9]+)?([eE][0-9]+|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$" "is not a quantity. Write for example 500m (of a CPU) or 1Gi (of memory)" true) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $index, $variable := .Values.extraEnv }}
{{- include "osd-migrate.wrong" (list (printf "extraEnv[%d].name" $index) $variable.name "^[-._a-zA-Z][-._a-zA-Z0-9]*$" "is not the name of an environment variable. Write for example OTEL_SERVICE_NAME" true) }}
{{- if regexMatch "^(POD_NAME|POD_NAMESPACE|POD_UID|RUST_LOG|OSD_MIGRATE_.*)$" $variable.name }}
extraEnv[{{ $index }}].name: the chart sets {{ $variable.name }} itself. Use the value that sets it: log for RUST_LOG; cluster, operatorNamespace, ceph.secretName and run.cephTimeout for OSD_MIGRATE_...
{{- end }}
{{- end }}
{{- end }}

{{/* Sentences about names of objects. */}}
{{- define "osd-migrate.validate.names" -}}
{{- $names := dict "cluster" .Values.cluster "ceph.secretName" .Values.ceph.secretName "priorityClass.name" .Values.priorityClass.name "serviceAccount.name" .Values.serviceAccount.name "traces.headersSecret" .Values.traces.headersSecret -}}
{{- range $index, $secret := .Values.imagePullSecrets }}{{ $_ := set $names (printf "imagePullSecrets[%d].name" $index) ($secret.name | default "-") }}{{ end }}
{{- range $name, $value := $names }}
{{- include "osd-migrate.wrong" (list $name $value "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$" "is not the name of an object in Kubernetes. Use lower-case letters, digits, - and ., at most 253 characters") }}
{{- end }}
{{- include "osd-migrate.wrong" (list "operatorNamespace" .Values.operatorNamespace "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" "is not the name of a namespace. Use lower-case letters, digits and -, at most 63 characters") }}
{{- if and .Values.priorityClass.create (not .Values.priorityClass.name) }}
priorityClass.name: it is empty, and priorityClass.create is true. Name the new PriorityClass: --set priorityClass.name=osd-migrate
{{- end }}
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) }}
serviceAccount.name: it is empty, and serviceAccount.create is false. Name a ServiceAccount that exists: --set serviceAccount.name=NAME
{{- end }}
{{- end }}

{{/* Sentences about metrics and traces. */}}
{{- define "osd-migrate.validate.telemetry" -}}
{{- with .Values.metrics }}
{{- if and .podMonitor.enabled (not .enabled) }}
metrics.podMonitor.enabled: it is true, and metrics.enabled is false. A PodMonitor needs metrics: --set metrics.enabled=true
{{- end }}
{{- include "osd-migrate.wrong" (list "metrics.podMonitor.interval" .podMonitor.interval "^([1-9]|[12][0-9]|30)s$" "is not an interval. Write 1s to 30s: a run that ended waits at most 45 s for its last scrape" true) }}
{{- end }}
{{- with .Values.traces }}
{{- include "osd-migrate.wrong" (list "traces.endpoint" .endpoint "^https?://[^/\\s]+(/\\S*)?$" "is not the URL of a collector. Write for example http://otel-collector.observability:4318") }}
{{- range $name, $_ := .env }}
{{- include "osd-migrate.wrong" (list "traces.env: the name" $name "^OTEL_[A-Z0-9_]+$" "is not a setting of OpenTelemetry. Write for example OTEL_RESOURCE_ATTRIBUTES, and others into extraEnv") }}
{{- end }}
{{- end }}
{{- end }}

{{/* Sentences about labels and annotations. */}}
{{- define "osd-migrate.validate.labels" -}}
{{- $label := include "osd-migrate.pattern.label" . -}}
{{- $all := dict "labels" .Values.labels "podLabels" .Values.podLabels "nodeSelector" .Values.nodeSelector -}}
{{- range $name := list "podMonitor" "alerts" "dashboard" }}{{ $_ := set $all (printf "metrics.%s.labels" $name) (index $.Values.metrics $name).labels }}{{ end }}
{{- range $name, $labels := $all }}
{{- range $key, $value := $labels }}
{{- if and (ne $name "nodeSelector") (regexMatch (include "osd-migrate.pattern.ownLabel" $) $key) }}
{{ $name }}: osd-migrate sets the label {{ quote $key }} itself. Remove it
{{- end }}
{{- include "osd-migrate.wrong" (list (printf "%s: the key" $name) $key (printf "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?%s$" $label) "is not a key of labels. Write for example team or example.com/team") }}
{{- include "osd-migrate.wrong" (list (printf "%s.%s" $name $key) $value (printf "^%s$" $label) "is not the value of a label. Use at most 63 letters, digits, - _ and ., with a letter or a digit at both ends") }}
{{- end }}
{{- end }}
{{- if hasKey (.Values.podAnnotations | default dict) "linkerd.io/inject" }}
podAnnotations: osd-migrate sets the annotation "linkerd.io/inject" itself. Remove it
{{- end }}
{{- end }}

{{/* Sentences about the schedule: five fields in the cron syntax of Kubernetes, or a word with @. */}}
{{- define "osd-migrate.validate.schedule" -}}
{{- $schedule := .Values.schedule -}}
{{- $fields := regexSplit "\\s+" (trim $schedule) -1 -}}
{{- if not $schedule }}
{{- else if hasPrefix "@" $schedule }}
{{- include "osd-migrate.wrong" (list "schedule" $schedule "^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$|^@every ([1-9][0-9]*[hms])+$" "is not a schedule. Write @hourly, @daily, @weekly, @monthly, @yearly, for example \"@every 12h\", or five fields: \"0 3 * * 0\" (Sundays at 03:00)") }}
{{- else if regexMatch "^(CRON_)?TZ=" $schedule }}
schedule: {{ quote $schedule }} names a time zone, which Kubernetes refuses here. Write the time zone into the value timeZone: --set timeZone=Europe/Berlin
{{- else if ne (len $fields) 5 }}
schedule: {{ quote $schedule }} has {{ len $fields }} field{{ if ne (len $fields) 1 }}s{{ end }}, and a schedule has five: minute, hour, day of the month, month, weekday. For Sundays at 03:00, write --set schedule="0 3 * * 0"
{{- else }}
{{- $kinds := list
  (list "minute" "[*?]|[0-5]?[0-9]" "0 to 59")
  (list "hour" "[*?]|[01]?[0-9]|2[0-3]" "0 to 23")
  (list "day of the month" "[*?]|0?[1-9]|[12][0-9]|3[01]" "1 to 31")
  (list "month" "[*?]|0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)" "1 to 12, jan to dec")
  (list "weekday" "[*?]|[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat)" "0 (Sunday) to 6, sun to sat") -}}
{{- range $index, $kind := $kinds }}
{{- $field := index $fields $index }}
{{- $one := index $kind 1 }}
{{- if not (regexMatch (printf "^(%s)(([-,]|/[1-9][0-9]*,)(%s))*(/[1-9][0-9]*)?$" $one $one) $field) }}
schedule: the {{ first $kind }} {{ quote $field }} of {{ quote $schedule }} is not valid. Write {{ last $kind }}, *, a list (1,3), a range (1-3) or a step (*/2)
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Sentences about the time zone. Helm itself knows the zones that are installed where it runs: if it knows Europe/Berlin, it knows all. An
unknown zone is read as UTC.
*/}}
{{- define "osd-migrate.validate.timeZone" -}}
{{- $zone := .Values.timeZone -}}
{{- $abbreviation := dateInZone "MST" (toDate "2006-01-02" "2026-01-15") $zone -}}
{{- $isUtc := regexMatch "^(Etc/)?(UTC|UCT|Universal|Zulu)$" $zone -}}
{{- $knows := eq "CET" (dateInZone "MST" (toDate "2006-01-02" "2026-01-15") "Europe/Berlin") -}}
{{- if or (not (regexMatch "^[A-Za-z][-+_A-Za-z0-9]*(/[-+_A-Za-z0-9]+)*$" $zone)) (eq (lower $zone) "local") (and $knows (not $isUtc) (eq $abbreviation "UTC")) }}
timeZone: {{ quote $zone }} is not a time zone. Write its name in the IANA database, for example UTC, Europe/Berlin or America/New_York
{{- end }}
{{- end }}
