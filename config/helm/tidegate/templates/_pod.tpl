{{/* What a pod of the gateway and a sidecar have in common, below `name`. */}}
{{- define "tidegate.container" -}}
{{- $prefix := ternary "tidegate-" "" (eq .Values.mode "sidecar") -}}
image: {{ include "tidegate.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [serve, --config, /etc/tidegate/tidegate.yaml]
env:
  - {name: NODE_OPTIONS, value: {{ ternary .Values.sidecar.nodeOptions .Values.nodeOptions (eq .Values.mode "sidecar") | quote }}}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
startupProbe:
  {{- toYaml .Values.startupProbe | nindent 2 }}
livenessProbe:
  {{- toYaml .Values.livenessProbe | nindent 2 }}
resources:
  {{- toYaml (ternary .Values.sidecar.resources .Values.resources (eq .Values.mode "sidecar")) | nindent 2 }}
volumeMounts:
  # These are folders, not files: kubelet never updates a file that is mounted by subPath.
  - {name: {{ $prefix }}config, mountPath: /etc/tidegate, readOnly: true}
  {{- if include "tidegate.secretName" . }}
  - {name: {{ $prefix }}secrets, mountPath: /run/secrets/tidegate, readOnly: true}
  {{- end }}
  - {name: {{ $prefix }}tmp, mountPath: /tmp}
  {{- if and .Values.persistence.enabled (include "tidegate.hasPods" .) }}
  - {name: state, mountPath: /var/lib/tidegate}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "tidegate.volumes" -}}
{{- $prefix := ternary "tidegate-" "" (eq .Values.mode "sidecar") -}}
- name: {{ $prefix }}config
  configMap: {name: {{ include "tidegate.fullname" . }}}
{{- with include "tidegate.secretName" . }}
- name: {{ $prefix }}secrets
  # In decimal: 0440, which fsGroup may read; in a sidecar, whose pod may have no fsGroup, 0444.
  secret: {secretName: {{ . }}, defaultMode: {{ ternary 292 288 (eq $.Values.mode "sidecar") }}}
{{- end }}
- name: {{ $prefix }}tmp
  emptyDir: {sizeLimit: 16Mi}
{{- if and .Values.persistence.enabled (include "tidegate.hasPods" .) }}
- name: state
  persistentVolumeClaim: {claimName: {{ default (include "tidegate.fullname" .) .Values.persistence.existingClaim }}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The patch that adds Tidegate to the pods of an application: below `spec` of a Deployment. */}}
{{- define "tidegate.sidecarPatch" -}}
template:
  metadata:
    labels:
      {{- include "tidegate.sidecarLabels" . | nindent 6 }}
    annotations:
      {{- include "tidegate.podAnnotations" . | nindent 6 }}
  spec:
    {{- with .Values.imagePullSecrets }}
    imagePullSecrets:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    initContainers:
      {{- include "tidegate.sidecarPatchContainer" . | nindent 6 }}
    volumes:
      {{- include "tidegate.volumes" . | nindent 6 }}
      {{- if not (include "tidegate.secretName" .) }}
      - {name: tidegate-secrets, $patch: delete}
      {{- end }}
{{- end -}}

{{/* The PodMonitor selects pods by the first of these labels. */}}
{{- define "tidegate.sidecarLabels" -}}
{{- list (dict "tidegate/sidecar" (include "tidegate.fullname" .)) .Values.podLabels | include "tidegate.mergeLabels" -}}
{{- end -}}

{{/* Running pods reload tidegate.yaml. Only a change that they cannot apply replaces them; sidecars, with the next patch. */}}
{{- define "tidegate.podAnnotations" -}}
{{- list (dict "tidegate/restart-checksum" (include "tidegate.restartChecksum" .)) .Values.podAnnotations | include "tidegate.mergeLabels" -}}
{{- end -}}

{{/*
The container in the patch, which may meet one that an earlier patch has added. A strategic merge adds to its lists, and keeps
the handler of a probe beside another: so the lists are replaced, and handlers that are not in use are removed.
*/}}
{{- define "tidegate.sidecarPatchContainer" -}}
{{- $container := include "tidegate.sidecarContainer" . | fromYamlArray | first -}}
{{- range list "env" "ports" "volumeMounts" -}}
{{- $_ := set $container . (prepend (get $container .) (dict "$patch" "replace")) -}}
{{- end -}}
{{- range $probe := list $container.startupProbe $container.livenessProbe -}}
{{- range list "exec" "grpc" "httpGet" "tcpSocket" -}}
{{- if not (hasKey $probe .) -}}{{- $_ := set $probe . nil -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $container.envFrom -}}{{- $_ := set $container "envFrom" nil -}}{{- end -}}
{{- list $container | toYaml -}}
{{- end -}}

{{/* A list of one init container. A chart that depends on this one includes it: README.md. */}}
{{- define "tidegate.sidecarContainer" -}}
{{- $ofPod := pick .Values.podSecurityContext "runAsNonRoot" "runAsUser" "runAsGroup" "seccompProfile" -}}
- name: tidegate
  # `Always` makes it a sidecar: it is ready before the application starts, and stops after the application.
  restartPolicy: Always
  {{- include "tidegate.container" . | nindent 2 }}
  ports:
    # The proxy's own port is not listed: it listens on the pod's loopback, and only containers of the pod can connect.
    - {name: telemetry, containerPort: {{ include "tidegate.port" (list . "telemetry") }}}
  securityContext:
    {{- merge (deepCopy .Values.securityContext) $ofPod | toYaml | nindent 4 }}
{{- end -}}
