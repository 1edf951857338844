{{/* The content of tidegate.yaml: `config` as text, unchanged; or `config` as a map, merged with the defaults of the mode. */}}
{{- define "tidegate.config" -}}
{{- $upstreams := dict -}}
{{- if kindIs "string" .Values.config -}}
{{- $parsed := fromYaml .Values.config -}}
{{- with $parsed.Error -}}{{- fail (printf "config: the text is not valid YAML: %s" .) -}}{{- end -}}
{{- $upstreams = $parsed.upstreams -}}
{{- else -}}
{{- $upstreams = (.Values.config).upstreams -}}
{{- end -}}
{{- if not $upstreams -}}
{{- fail "config.upstreams: there is none; name at least one, such as config: {upstreams: {payments: {url: \"https://payments.example.com\"}}}" -}}
{{- end -}}
{{- if kindIs "string" .Values.config -}}
{{- .Values.config -}}
{{- else -}}
{{- $config := printf "files/defaults/%s.yaml" .Values.mode | .Files.Get | fromYaml -}}
{{- if include "tidegate.hasRedis" . -}}
{{- $_ := set $config "state" (dict "store" "redis" "url" (printf "redis://%s:6379" (include "tidegate.redisName" .)) "username" "tidegate" "password" "${file:/run/secrets/tidegate/redis-password}") -}}
{{- end -}}
{{- range $key, $value := .Values.config -}}
{{- $default := get $config $key -}}
{{- if and (kindIs "map" $default) (kindIs "map" $value) -}}
{{- range $inner, $content := $value -}}{{- $_ := set $default $inner $content -}}{{- end -}}
{{- else -}}
{{- $_ := set $config $key $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
{{- end -}}

{{/* host:port, or unix:/path: `include "tidegate.address" (list . "listen")`. */}}
{{- define "tidegate.address" -}}
{{- $key := last . -}}
{{- $address := get (first . | include "tidegate.config" | fromYaml) $key -}}
{{- if kindIs "map" $address -}}{{- $address = $address.address -}}{{- end -}}
{{- default (ternary "127.0.0.1:8080" "none" (eq $key "listen")) $address -}}
{{- end -}}

{{/* The number of a port that others than the pod connect to: `include "tidegate.port" (list . "telemetry")`. */}}
{{- define "tidegate.port" -}}
{{- $key := last . -}}
{{- $address := include "tidegate.address" . -}}
{{- $port := regexFind ":[0-9]+$" $address | trimPrefix ":" -}}
{{- if not $port -}}
{{- fail (printf "config.%s: probes and the Service need host:port here, such as 0.0.0.0:8080, and not %s" $key $address) -}}
{{- end -}}
{{- if or (lt (int $port) 1) (gt (int $port) 65535) -}}
{{- fail (printf "config.%s: probes and the Service need a port from 1 to 65535, and not %s" $key $port) -}}
{{- end -}}
{{- if regexMatch "^(127[.].*|localhost|\\[::1\\]):[0-9]+$" (lower $address) -}}
{{- fail (printf "config.%s: only the pod itself can connect to %s; set 0.0.0.0:%s, or [::]:%s for IPv6" $key $address $port $port) -}}
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
{{- range $config.upstreams -}}
{{- if eq .url "practice" -}}{{- $values = append $values "practice" | uniq -}}{{- end -}}
{{- end -}}
{{- toJson $values | sha256sum -}}
{{- end -}}

{{/* The keys of the Secret that the configuration refers to, as a JSON list. */}}
{{- define "tidegate.secretKeys" -}}
{{- $files := regexFindAll "/run/secrets/tidegate/[-._a-zA-Z0-9]+" (include "tidegate.config" . | fromYaml | toJson) -1 | uniq | sortAlpha -}}
{{- $keys := list -}}
{{- range $files -}}{{- $keys = append $keys (base .) -}}{{- end -}}
{{- toJson $keys -}}
{{- end -}}

{{- define "tidegate.secretName" -}}
{{- if include "tidegate.secretKeys" . | fromJsonArray -}}
{{- default (include "tidegate.fullname" .) .Values.existingSecret -}}
{{- end -}}
{{- end -}}

{{/* URLs that neither HTTPS to public addresses nor the policy of the mode allows, as a JSON list. */}}
{{- define "tidegate.blockedUrls" -}}
{{- $config := include "tidegate.config" . | fromYaml -}}
{{- $urls := list -}}
{{- if eq .Values.mode "gateway" -}}
{{- range $config.upstreams -}}
{{- $urls = default (list (default "" .url)) .urls | concat $urls -}}
{{- end -}}
{{- end -}}
{{- $urls = append $urls (((($config.clients).auth).jwt).jwks | default "") -}}
{{- $isOpen := and .Values.networkPolicy.publicHttps (eq .Values.mode "gateway") -}}
{{- $blocked := list -}}
{{- range uniq $urls -}}
{{- $isPublic := regexMatch "^https://[^/:]+[.][^/:]+(:443)?(/|$)" . -}}
{{- $isInCluster := regexMatch "^https://([^/:]+[.]svc([.][^/:]*)?|[^/:]+[.]local)(:[0-9]+)?(/|$)" . -}}
{{- if and (regexMatch "^https?://" .) (not (and $isOpen $isPublic (not $isInCluster))) -}}{{- $blocked = append $blocked . -}}{{- end -}}
{{- end -}}
{{- toJson $blocked -}}
{{- end -}}

{{/* Places of secrets that `config` contains as such, and not as a reference, as a JSON list. */}}
{{- define "tidegate.literalSecrets" -}}
{{- $config := include "tidegate.config" . | fromYaml -}}
{{- $found := list -}}
{{- range $path := list "secret" "admin.token" "check.token" "state.password" "state.sentinelPassword" -}}
{{- $value := $config -}}
{{- range splitList "." $path -}}
{{- if kindIs "map" $value -}}{{- $value = get $value . -}}{{- else -}}{{- $value = "" -}}{{- end -}}
{{- end -}}
{{- if and (kindIs "string" $value) (not (contains "${" $value)) (ne $value "") -}}{{- $found = append $found (printf "config.%s" $path) -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}
