{{/*
Labels of an object: those that Kubernetes recommends, and the owner's. The root, or dict: root, component (run if it is not given).
*/}}
{{- define "osd-migrate.labels" -}}
{{- $root := .root | default . -}}
{{- include "osd-migrate.ownLabels" . }}
{{- with $root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels that no value replaces. As above. */}}
{{- define "osd-migrate.ownLabels" -}}
{{- $root := .root | default . -}}
app.kubernetes.io/name: osd-migrate
app.kubernetes.io/instance: {{ quote $root.Release.Name }}
app.kubernetes.io/version: {{ quote $root.Chart.AppVersion }}
app.kubernetes.io/component: {{ .component | default "run" }}
app.kubernetes.io/part-of: osd-migrate
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name ($root.Chart.Version | replace "+" "_") | trunc 63 | quote }}
{{- end }}

{{/* Metadata of a pod. dict: root, part */}}
{{- define "osd-migrate.podMetadata" -}}
labels:
  {{- include "osd-migrate.ownLabels" (dict "root" .root "component" .part) | nindent 2 }}
  osd-migrate.io/part: {{ .part }}
  sidecar.istio.io/inject: "false" # a sidecar would prevent the Job from ending
  linkerd.io/inject: disabled
  {{- with merge (dict) (.root.Values.podLabels | default dict) (.root.Values.labels | default dict) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  linkerd.io/inject: disabled
  kubectl.kubernetes.io/default-container: osd-migrate # for kubectl logs and exec: the pod has an init container, too
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Pod of every command. It meets the restricted profile. dict: root, account, args; telemetry: for runs only */}}
{{- define "osd-migrate.podSpec" -}}
{{- $values := .root.Values -}}
restartPolicy: Never
serviceAccountName: {{ quote .account }}
automountServiceAccountToken: true # the program talks to the API
enableServiceLinks: false
{{- with $values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with $values.priorityClass.name }}
priorityClassName: {{ quote . }}
{{- end }}
# true if the CephCluster has network.provider host, and the pod network does not reach the mons
hostNetwork: {{ $values.hostNetwork }}
{{- if $values.hostNetwork }}
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 167 # ceph, in Ceph's images
  runAsGroup: 167
  seccompProfile: {type: RuntimeDefault}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
# The program has an image of its own, and runs in the cluster's Ceph image, which has librados. Node Jobs use this image, too.
initContainers:
- name: install
  image: {{ include "osd-migrate.image" .root | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  command: [/install, /opt/osd-migrate]
  resources: {{- toYaml $values.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
  - {name: program, mountPath: /opt/osd-migrate}
containers:
- name: osd-migrate
  image: {{ include "osd-migrate.cephImage" .root | quote }}
  imagePullPolicy: IfNotPresent
  command: [/opt/osd-migrate/osd-migrate]
  args: {{ toJson .args }}
  env:
  - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
  - {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
  {{- with include "osd-migrate.place" .root | trim }}
  {{- nindent 2 . }}
  {{- end }}
  {{- with $values.log }}
  - {name: RUST_LOG, value: {{ quote . }}}
  {{- end }}
  {{- if ne $values.logFormat "text" }}
  - {name: OSD_MIGRATE_LOG_FORMAT, value: {{ $values.logFormat }}}
  {{- end }}
  {{- if .telemetry }}
  {{- with include "osd-migrate.telemetry" .root | trim }}
  {{- nindent 2 . }}
  {{- end }}
  {{- end }}
  {{- with $values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if .telemetry }}
  {{- if $values.metrics.enabled }}
  ports:
  - {name: metrics, containerPort: {{ $values.metrics.port }}}
  {{- end }}
  {{- end }}
  resources: {{- toYaml $values.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  terminationMessagePolicy: FallbackToLogsOnError # kubectl describe shows the last lines of the log
  volumeMounts:
  - {name: program, mountPath: /opt/osd-migrate, readOnly: true}
  - {name: tmp, mountPath: /tmp} # librados gets mons and key by call and writes no file; a library that it uses may write one
volumes:
- name: program
  emptyDir: {}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 16Mi}
{{- end }}

{{/* Image with the program alone. A published chart has the repository in its values. */}}
{{- define "osd-migrate.image" -}}
{{- with .Values.image -}}
{{- if not .repository -}}
{{- fail "image.repository is empty: this chart was not published by a release. Build the image and name it (docs/development/releasing.md): --set image.repository=REGISTRY/osd-migrate" -}}
{{- end -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end }}

{{/* Ceph image in which the program runs: the value, or the image of the CephCluster in the release namespace. */}}
{{- define "osd-migrate.cephImage" -}}
{{- if .Values.cephImage -}}
{{ .Values.cephImage }}
{{- else -}}
{{- $clusters := list -}}
{{- if .Capabilities.APIVersions.Has "ceph.rook.io/v1" -}}
{{- range (lookup "ceph.rook.io/v1" "CephCluster" .Release.Namespace "").items -}}
{{- if or (not $.Values.cluster) (eq .metadata.name $.Values.cluster) -}}{{ $clusters = append $clusters . }}{{- end -}}
{{- end -}}
{{- end -}}
{{- $set := printf "Set cephImage to the Ceph image of the cluster. It is printed by: kubectl -n %s get cephclusters -o jsonpath='{.items[*].spec.cephVersion.image}'" .Release.Namespace -}}
{{- if not $clusters -}}
{{- fail (printf "cephImage is empty, and namespace %s has no CephCluster%s that Helm can see. (helm template and Argo CD see no cluster.) %s" .Release.Namespace (empty .Values.cluster | ternary "" (printf " %s" .Values.cluster)) $set) -}}
{{- end -}}
{{- if gt (len $clusters) 1 -}}
{{- $names := list -}}
{{- range $clusters }}{{ $names = append $names .metadata.name }}{{ end -}}
{{- fail (printf "cephImage is empty, and namespace %s has several CephClusters (%s). Set cluster to the name of one of them" .Release.Namespace (join ", " $names)) -}}
{{- end -}}
{{- range $clusters -}}
{{- $image := dig "cephVersion" "image" "" .spec -}}
{{- if not $image -}}
{{- fail (printf "cephImage is empty, and CephCluster %s names no image (spec.cephVersion.image). %s" .metadata.name $set) -}}
{{- end -}}
{{ $image }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Settings that find the cluster, as environment variables: a Job with other arguments, and a shell in its pod, have them too. */}}
{{- define "osd-migrate.place" -}}
{{- with .Values.cluster }}
- {name: OSD_MIGRATE_CLUSTER, value: {{ quote . }}}
{{- end }}
{{- with .Values.operatorNamespace }}
- {name: OSD_MIGRATE_OPERATOR_NAMESPACE, value: {{ quote . }}}
{{- end }}
{{- with .Values.ceph.secretName }}
- {name: OSD_MIGRATE_CEPH_SECRET, value: {{ quote . }}}
{{- end }}
{{- if ne (int .Values.run.cephTimeout) 30 }}
- {name: OSD_MIGRATE_CEPH_TIMEOUT, value: {{ .Values.run.cephTimeout | toString | quote }}}
{{- end }}
{{- end }}

{{/* ServiceAccount of runs and of the uninstall hook. */}}
{{- define "osd-migrate.account" -}}
{{ .Values.serviceAccount.name | default "osd-migrate" }}
{{- end }}

{{/* Settings of metrics and traces, as environment variables of runs. */}}
{{- define "osd-migrate.telemetry" -}}
{{- with .Values.metrics }}
{{- if .enabled }}
- {name: OSD_MIGRATE_METRICS_PORT, value: {{ .port | toString | quote }}}
{{- end }}
{{- end }}
{{- with .Values.traces }}
{{- with .endpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ quote . }}}
{{- end }}
{{- range $name, $value := .env }}
- {name: {{ $name }}, value: {{ quote $value }}}
{{- end }}
{{- with .headersSecret }}
- {name: OTEL_EXPORTER_OTLP_HEADERS, valueFrom: {secretKeyRef: {name: {{ quote . }}, key: headers}}}
{{- end }}
{{- end }}
{{- end }}

{{/* Secret with the Ceph user. The Role allows to read no other Secret. */}}
{{- define "osd-migrate.cephSecret" -}}
{{ .Values.ceph.secretName | default "rook-ceph-mon" }}
{{- end }}

{{/* Arguments of a run. */}}
{{- define "osd-migrate.run" -}}
{{- $args := list "run" -}}
{{- with .Values.run -}}
{{- with .confirmation }}{{ $args = concat $args (list "--confirm" .) }}{{ end -}}
{{- with .approve }}{{ $args = concat $args (list "--approve" .) }}{{ end -}}
{{- with .select }}{{ $args = concat $args (list "--select" (join "," .)) }}{{ end -}}
{{- with .hosts }}{{ $args = concat $args (list "--host" (join "," .)) }}{{ end -}}
{{- with .deviceClasses }}{{ $args = concat $args (list "--device-class" (join "," .)) }}{{ end -}}
{{- with .skip }}{{ $args = concat $args (list "--skip" (join "," .)) }}{{ end -}}
{{- range .windows }}{{ $args = concat $args (list "--window" .) }}{{ end -}}
{{- if ne $.Values.timeZone "UTC" }}{{ $args = concat $args (list "--time-zone" $.Values.timeZone) }}{{ end -}}
{{- if .scaleOperator }}{{ $args = append $args "--scale-operator" }}{{ end -}}
{{- if $.Values.remove.enabled }}{{ $args = append $args "--removals" }}{{ end -}}
{{- if .clusterStatus }}{{ $args = append $args "--cluster-status" }}{{ end -}}
{{- if .noScrub }}{{ $args = append $args "--no-scrub" }}{{ end -}}
{{- if ne .recovery "asIs" }}{{ $args = concat $args (list "--recovery" .recovery) }}{{ end -}}
{{- if .allowRefused }}{{ $args = append $args "--allow-refused" }}{{ end -}}
{{- if ne .deploymentBy "osd-migrate" }}{{ $args = concat $args (list "--deployment-by" .deploymentBy) }}{{ end -}}
{{- if ne .requireClean "all" }}{{ $args = concat $args (list "--require-clean" .requireClean) }}{{ end -}}
{{- if ne .empty "thin" }}{{ $args = concat $args (list "--empty" .empty) }}{{ end -}}
{{- if .dropDirectories }}{{ $args = append $args "--drop-directories" }}{{ end -}}
{{- if .removeOut }}{{ $args = concat $args (list "--remove-out" "--remove-out-after" (.removeOutAfter | toString)) }}{{ end -}}
{{- if ne (int .failureLimit) 1 }}{{ $args = concat $args (list "--failure-limit" (.failureLimit | toString)) }}{{ end -}}
{{- if ne .startLimit "15m" }}{{ $args = concat $args (list "--start-limit" .startLimit) }}{{ end -}}
{{- if ne .nooutLimit "15m" }}{{ $args = concat $args (list "--noout-limit" .nooutLimit) }}{{ end -}}
{{- if ne .agentRetryPause "30s" }}{{ $args = concat $args (list "--agent-retry-pause" .agentRetryPause) }}{{ end -}}
{{- if ne .skipAfter "15m" }}{{ $args = concat $args (list "--skip-after" .skipAfter) }}{{ end -}}
{{- if ne (.inParallel | toString) "5%" }}{{ $args = concat $args (list "--in-parallel" (.inParallel | toString)) }}{{ end -}}
{{- if ne .soak "10m" }}{{ $args = concat $args (list "--soak" .soak) }}{{ end -}}
{{- with .maxCommitLatency }}{{ $args = concat $args (list "--max-commit-latency" .) }}{{ end -}}
{{- if ne (int .atOnce) 1 }}{{ $args = concat $args (list "--at-once" (.atOnce | toString)) }}{{ end -}}
{{- end -}}
{{ toJson $args }}
{{- end }}

{{/* Failures that a retry does not fix, and disruptions that are no failures of the run. */}}
{{- define "osd-migrate.podFailurePolicy" -}}
rules:
# wrong usage, refused before any change, a person must act, finished with OSDs left: a retry does not help
- action: FailJob
  onExitCodes: {containerName: osd-migrate, operator: In, values: [2, 3, 10, 11, 12]}
# drained, preempted or evicted: no failure of the run
- action: Ignore
  onPodConditions: [{type: DisruptionTarget, status: "True"}]
{{- end }}

{{/* Name of objects outside of the release namespace: each CephCluster can have its own osd-migrate. */}}
{{- define "osd-migrate.clusterName" -}}
osd-migrate-{{ .Release.Namespace }}
{{- end }}

{{/* Namespace of Rook's operator, if it differs from the release namespace. */}}
{{- define "osd-migrate.operatorNamespace" -}}
{{- if ne .Values.operatorNamespace .Release.Namespace }}{{ .Values.operatorNamespace }}{{ end -}}
{{- end }}

{{/* Rights to observe Rook's operator. */}}
{{- define "osd-migrate.operatorRules" -}}
- {apiGroups: [apps], resources: [deployments], verbs: [list]}
- {apiGroups: [""], resources: [pods], verbs: [list]}
{{- end }}

{{/* Right to scale Rook's operator to 0 while OSDs are migrated, and back. */}}
{{- define "osd-migrate.scaleRules" -}}
{{- if .Values.run.scaleOperator }}
- {apiGroups: [apps], resources: [deployments/scale], resourceNames: [rook-ceph-operator], verbs: [patch]}
{{- end }}
{{- end }}

{{/* Job that Helm waits for. dict: root, part, account, args */}}
{{- define "osd-migrate.hookJob" -}}
backoffLimit: 6
activeDeadlineSeconds: {{ int .root.Values.job.hookDeadlineSeconds }} # before the timeout of Helm, so that its message names the Job
ttlSecondsAfterFinished: 86400 # a failed Job keeps its log for a day
podReplacementPolicy: Failed
podFailurePolicy: {{- include "osd-migrate.podFailurePolicy" . | nindent 2 }}
template:
  metadata: {{- include "osd-migrate.podMetadata" (dict "root" .root "part" .part) | nindent 4 }}
  spec:
    {{- include "osd-migrate.podSpec" (dict "root" .root "account" .account "args" .args) | nindent 4 }}
{{- end }}

{{/* Right to use security context constraints of OpenShift. dict: root, component, account, constraints, hook */}}
{{- define "osd-migrate.constraints" -}}
{{- $name := printf "%s-scc" .account }}
{{- $hook := dict "helm.sh/hook" "pre-upgrade" "helm.sh/hook-weight" "-10" "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded,hook-failed" }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ quote .root.Release.Namespace }}
  labels: {{- include "osd-migrate.labels" . | nindent 4 }}
  {{- if .hook }}
  annotations: {{- toYaml $hook | nindent 4 }}
  {{- end }}
rules:
- {apiGroups: [security.openshift.io], resources: [securitycontextconstraints], resourceNames: [{{ .constraints }}], verbs: [use]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ quote .root.Release.Namespace }}
  labels: {{- include "osd-migrate.labels" . | nindent 4 }}
  {{- if .hook }}
  annotations: {{- toYaml $hook | nindent 4 }}
  {{- end }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $name }}}
subjects:
- {kind: ServiceAccount, name: {{ quote .account }}, namespace: {{ quote .root.Release.Namespace }}}
{{- end }}
