{{- define "tidegate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 46 characters: Kubernetes labels the pods of Redis with the name, `-redis-` and ten characters, 63 in all. */}}
{{- define "tidegate.fullname" -}}
{{- $name := include "tidegate.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 46 | trimSuffix "-" -}}
{{- end -}}

{{- define "tidegate.redisName" -}}
{{- include "tidegate.fullname" . }}-redis
{{- end -}}

{{/* Made by toYaml, which quotes a release name such as 123. */}}
{{- define "tidegate.selectorLabels" -}}
{{- dict "app.kubernetes.io/name" (include "tidegate.name" .) "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/component" .Values.mode | toYaml -}}
{{- end -}}

{{- define "tidegate.redisSelectorLabels" -}}
{{- include "tidegate.selectorLabels" . | fromYaml | merge (dict "app.kubernetes.io/component" "redis") | toYaml -}}
{{- end -}}

{{/* `include "tidegate.mergeLabels" (list FIRST SECOND …)`: each key once, with the value of the first map that has it. */}}
{{- define "tidegate.mergeLabels" -}}
{{- $labels := dict -}}
{{- range compact . -}}{{- $labels = merge $labels (deepCopy .) -}}{{- end -}}
{{- toYaml $labels -}}
{{- end -}}

{{/* Labels that change with a release. They are in no selector, which could never change. */}}
{{- define "tidegate.releaseLabels" -}}
{{- dict "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/managed-by" .Release.Service "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") | toYaml -}}
{{- end -}}

{{- define "tidegate.labels" -}}
{{- include "tidegate.labelsWith" (list . dict) -}}
{{- end -}}

{{/* `include "tidegate.labelsWith" (list . LABELS)`: the labels of an object that has some of its own. */}}
{{- define "tidegate.labelsWith" -}}
{{- $ := first . -}}
{{- list (include "tidegate.selectorLabels" $ | fromYaml) (include "tidegate.releaseLabels" $ | fromYaml) (last .) $.Values.commonLabels | include "tidegate.mergeLabels" -}}
{{- end -}}

{{- define "tidegate.redisLabels" -}}
{{- list (include "tidegate.redisSelectorLabels" . | fromYaml) (include "tidegate.releaseLabels" . | fromYaml) .Values.commonLabels | include "tidegate.mergeLabels" -}}
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
