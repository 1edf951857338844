{{/* Fails for values that agree with the schema, but not with each other. */}}
{{- define "tidegate.checkValues" -}}
{{- $name := include "tidegate.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "fullnameOverride: %s cannot be the name of a Service, which has lower-case letters, digits and hyphens, and begins with a letter" $name) -}}
{{- end -}}
{{- include "tidegate.checkMode" . -}}
{{- include "tidegate.checkConfig" . -}}
{{- include "tidegate.checkState" . -}}
{{- end -}}

{{/* The selector of a Deployment contains the mode, and cannot change. Without a cluster, `lookup` finds nothing. */}}
{{- define "tidegate.checkMode" -}}
{{- $labels := (((lookup "apps/v1" "Deployment" .Release.Namespace (include "tidegate.fullname" .)).spec).selector).matchLabels | default dict -}}
{{- $former := get $labels "app.kubernetes.io/component" | default .Values.mode -}}
{{- if and (eq (get $labels "app.kubernetes.io/instance") .Release.Name) (ne $former .Values.mode) -}}
{{- fail (printf "mode: this release is of mode %s, which cannot become %s; install another release beside it" $former .Values.mode) -}}
{{- end -}}
{{- end -}}

{{/* Maps that helm would change: it sorts their keys, and reads some of them as booleans. */}}
{{- define "tidegate.checkConfig" -}}
{{- if kindIs "map" .Values.config -}}
{{- $clients := get .Values.config "clients" | default dict -}}
{{- range $key := list "classes" "names" -}}
{{- if gt (get $clients $key | default dict | len) 1 -}}
{{- fail (printf "config.clients.%s: the first match applies, and helm does not keep the order of a map; write config as a text, after `config: |` or by --set-file config=tidegate.yaml" $key) -}}
{{- end -}}
{{- end -}}
{{- range $path, $map := dict "upstreams" .Values.config.upstreams "clients.classes" $clients.classes "clients.names" $clients.names -}}
{{- range $key, $_ := $map -}}
{{- if has $key (list "true" "false") -}}
{{- fail (printf "config.%s: the name of an entry is %s for helm, as yes, no, on and off are; write it in quotes" $path $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* State that replicas would not share, and state on no volume. */}}
{{- define "tidegate.checkState" -}}
{{- $state := get (include "tidegate.config" . | fromYaml) "state" | default (dict "store" "memory") -}}
{{- $isScaled := and (include "tidegate.hasPods" .) (or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1)) -}}
{{- if and $isScaled .Values.persistence.enabled -}}
{{- fail "persistence.enabled: one process uses a volume at a time; set autoscaling.enabled to false and replicaCount to 1" -}}
{{- end -}}
{{- if include "tidegate.hasRedis" . -}}
{{- $url := printf "redis://%s:6379" (include "tidegate.redisName" .) -}}
{{- if not (and (eq $state.store "redis") (regexMatch (printf "^%s(/[0-9]*)?$" $url) (toString $state.url))) -}}
{{- fail (printf "config.state: it does not use the Redis of the chart; set redis.enabled to false, or config.state to {store: redis, url: %s, username: tidegate, password: \"${file:/run/secrets/tidegate/redis-password}\"}" $url) -}}
{{- end -}}
{{- else if and $isScaled (ne $state.store "redis") -}}
{{- fail (printf "config.state: with the store %s, each replica has limits and idempotency keys of its own; set redis.enabled to true, write config.state for a Redis of your own, or set autoscaling.enabled to false and replicaCount to 1" $state.store) -}}
{{- end -}}
{{- $file := $state.file | default "" -}}
{{- if and $file (not (contains "${" $file)) -}}
{{- $folders := ternary (list "/var/lib/tidegate") list (and .Values.persistence.enabled (eq (include "tidegate.hasPods" .) "true")) -}}
{{- range .Values.extraVolumeMounts -}}{{- $folders = append $folders .mountPath -}}{{- end -}}
{{- $isMounted := false -}}
{{- range $folders -}}{{- if hasPrefix (printf "%s/" (trimSuffix "/" .)) $file -}}{{- $isMounted = true -}}{{- end -}}{{- end -}}
{{- if not $isMounted -}}
{{- fail (printf "config.state.file: %s is on no volume; set persistence.enabled and a file in /var/lib/tidegate, or mount a volume by extraVolumes and extraVolumeMounts" $file) -}}
{{- end -}}
{{- end -}}
{{- end -}}
