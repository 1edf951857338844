{{- define "tidegate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 53 characters, so that `-redis-…` and the suffixes of pods fit into the 63 of a label. */}}
{{- define "tidegate.fullname" -}}
{{- $name := include "tidegate.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "tidegate.redisName" -}}
{{- include "tidegate.fullname" . }}-redis
{{- end -}}

{{- define "tidegate.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tidegate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .Values.mode }}
{{- end -}}

{{- define "tidegate.redisSelectorLabels" -}}
app.kubernetes.io/name: {{ include "tidegate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: redis
{{- end -}}

{{/* Labels that change with a release. They are in no selector, which could never change. */}}
{{- define "tidegate.releaseLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tidegate.labels" -}}
{{ include "tidegate.selectorLabels" . }}
{{ include "tidegate.releaseLabels" . }}
{{- end -}}

{{- define "tidegate.redisLabels" -}}
{{ include "tidegate.redisSelectorLabels" . }}
{{ include "tidegate.releaseLabels" . }}
{{- end -}}

{{- define "tidegate.serviceAccountName" -}}
{{- default (ternary (include "tidegate.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "tidegate.image" -}}
{{- with .Values.image -}}
{{- $repository := required "image.repository: no image of Tidegate is published; build it, push it, and set its repository here" .repository -}}
{{- if .digest -}}{{ $repository }}@{{ .digest }}{{- else -}}{{ $repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether the release has pods of its own. */}}
{{- define "tidegate.hasPods" -}}
{{- if ne .Values.mode "sidecar" }}true{{ end -}}
{{- end -}}

{{- define "tidegate.hasRedis" -}}
{{- if and .Values.redis.enabled (include "tidegate.hasPods" .) }}true{{ end -}}
{{- end -}}
