{{/* The content of tidegate.yaml: `config`, the defaults of the mode, and the state if the chart runs Redis. */}}
{{- define "tidegate.config" -}}
{{- if not .Values.config.upstreams -}}
{{- fail "config.upstreams: there is none; name at least one, such as config: {upstreams: {payments: {url: \"https://payments.example.com\"}}}" -}}
{{- end -}}
{{- $config := printf "files/defaults/%s.yaml" .Values.mode | .Files.Get | fromYaml -}}
{{- range $key, $value := .Values.config -}}
{{- $_ := set $config $key $value -}}
{{- end -}}
{{- if include "tidegate.hasRedis" . -}}
{{- $name := include "tidegate.redisName" . -}}
{{- if not $config.state -}}
{{- $_ := set $config "state" (dict "store" "redis" "url" (printf "redis://%s:6379" $name) "username" "tidegate" "password" "${file:/run/secrets/tidegate/redis-password}") -}}
{{- else if not (contains $name (toString $config.state.url)) -}}
{{- fail (printf "config.state: it does not use the Redis of the chart; set redis.enabled to false, or config.state.url to redis://%s:6379" $name) -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The number of a port: `include "tidegate.port" (list . "telemetry")`. */}}
{{- define "tidegate.port" -}}
{{- $key := last . -}}
{{- $address := get (first . | include "tidegate.config" | fromYaml) $key -}}
{{- if kindIs "map" $address -}}{{- $address = $address.address | default "127.0.0.1:8080" -}}{{- end -}}
{{- $port := toString $address | regexFind ":[0-9]+$" | trimPrefix ":" -}}
{{- if not $port -}}
{{- fail (printf "config.%s: probes and the Service need host:port here, such as 0.0.0.0:8080, and not %v" $key $address) -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{/* A duration such as 1.5s in whole seconds, rounded up. */}}
{{- define "tidegate.seconds" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?" $text -}}
{{- $unit := trimPrefix $number $text -}}
{{- $factor := get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "" 1.0) $unit -}}
{{- if or (not $number) (not $factor) -}}
{{- fail (printf "config.drain: %s is no duration whose sum can be computed; set terminationGracePeriodSeconds" $text) -}}
{{- end -}}
{{- mulf (float64 $number) $factor | ceil -}}
{{- end -}}

{{/* Longer than everything that happens after the pod is deleted: docs/drains.md. */}}
{{- define "tidegate.gracePeriod" -}}
{{- if kindIs "invalid" .Values.terminationGracePeriodSeconds -}}
{{- $drain := get (include "tidegate.config" . | fromYaml) "drain" | default dict -}}
{{- $delay := include "tidegate.seconds" (get $drain "delay" | default (ternary 0 "5s" (hasKey $drain "delay"))) -}}
{{- $timeout := include "tidegate.seconds" (get $drain "timeout" | default (ternary 0 "25s" (hasKey $drain "timeout"))) -}}
{{- add .Values.preStopSeconds (float64 $delay) (float64 $timeout) 10 -}}
{{- else -}}
{{- int .Values.terminationGracePeriodSeconds -}}
{{- end -}}
{{- end -}}

{{/* A hash of the keys that a running process cannot apply (docs/reload.md): if one changes, the pods are replaced. */}}
{{- define "tidegate.restartChecksum" -}}
{{- $config := include "tidegate.config" . | fromYaml -}}
{{- $values := list -}}
{{- range $path := .Files.Lines "files/restart-paths.txt" -}}
{{- $value := $config -}}
{{- range splitList "." $path -}}
{{- if kindIs "map" $value -}}{{- $value = get $value . -}}{{- else -}}{{- $value = "" -}}{{- end -}}
{{- end -}}
{{- $values = append $values $value -}}
{{- end -}}
{{- toJson $values | sha256sum -}}
{{- end -}}

{{/* The keys of the Secret that the configuration refers to, as a JSON list. */}}
{{- define "tidegate.secretKeys" -}}
{{- $files := regexFindAll "/run/secrets/tidegate/[-._a-zA-Z0-9]+" (include "tidegate.config" .) -1 | uniq | sortAlpha -}}
{{- $keys := list -}}
{{- range $files -}}{{- $keys = append $keys (base .) -}}{{- end -}}
{{- toJson $keys -}}
{{- end -}}

{{- define "tidegate.secretName" -}}
{{- if include "tidegate.secretKeys" . | fromJsonArray -}}
{{- default (include "tidegate.fullname" .) .Values.existingSecret -}}
{{- end -}}
{{- end -}}
