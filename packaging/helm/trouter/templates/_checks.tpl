{{/* Fail with every fault of the values that a schema cannot see, each with its cure. */}}
{{- define "trouter.check" -}}
{{- $v := .Values -}}
{{- $faults := list -}}
{{- if not $v.certManager.enabled -}}
{{- if not $v.network.tlsSecret -}}
{{- $faults = append $faults "network.tlsSecret is empty: name a Secret with ca.crt, tls.crt and tls.key for TLS between the routers, or set certManager.enabled" -}}
{{- end -}}
{{- if not $v.clients.tlsSecret -}}
{{- $faults = append $faults "clients.tlsSecret is empty: name a Secret with tls.crt and tls.key, the certificate that clients see, or set certManager.enabled" -}}
{{- end -}}
{{- else if not $v.certManager.issuerRef.name -}}
{{- $faults = append $faults "certManager.issuerRef.name is empty: name the Issuer or ClusterIssuer that signs the certificates" -}}
{{- end -}}
{{- if not $v.clients.usersSecret -}}
{{- $faults = append $faults "clients.usersSecret is empty: name a Secret with the key users, a file that `trouter passwd add users NAME` makes" -}}
{{- end -}}
{{- if eq (int $v.interior.replicas) 0 -}}
{{- if not (include "trouter.hasEdges" .) -}}
{{- $faults = append $faults "interior.replicas and edge.replicas are both 0: the release has no router" -}}
{{- else if not $v.edge.uplinks -}}
{{- $faults = append $faults "interior.replicas is 0 and edge.uplinks is empty: edge routers need interior ones; name those of another network in edge.uplinks, or set interior.replicas to 1 or more" -}}
{{- end -}}
{{- else if $v.edge.uplinks -}}
{{- $faults = append $faults "edge.uplinks is set and interior.replicas is not 0: the edge routers would not use the interior ones of this release; empty edge.uplinks, or set interior.replicas to 0" -}}
{{- end -}}
{{- if $v.edge.autoscaling.enabled -}}
{{- if gt (int $v.edge.autoscaling.minReplicas) (int $v.edge.autoscaling.maxReplicas) -}}
{{- $faults = append $faults (printf "edge.autoscaling.minReplicas (%d) is above maxReplicas (%d)" (int $v.edge.autoscaling.minReplicas) (int $v.edge.autoscaling.maxReplicas)) -}}
{{- end -}}
{{- if not (dig "requests" "cpu" "" (default dict $v.edge.resources)) -}}
{{- $faults = append $faults "edge.autoscaling needs edge.resources.requests.cpu: the percentage is of that" -}}
{{- end -}}
{{- end -}}
{{- if $v.console.ingress.enabled -}}
{{- if not $v.console.enabled -}}
{{- $faults = append $faults "console.ingress.enabled is set and console.enabled is not: there is no console to lead to" -}}
{{- end -}}
{{- if not $v.console.ingress.host -}}
{{- $faults = append $faults "console.ingress.host is empty: write the host name under which browsers find the console" -}}
{{- end -}}
{{- end -}}
{{- range $own, $use := dict "edges" "the uplinks of edge routers" "pod" "commands in a pod" -}}
{{- if hasKey $v.policy.vhosts $own -}}
{{- $faults = append $faults (printf "policy.vhosts has the name %s, which is the chart's own, for %s: take another name" $own $use) -}}
{{- end -}}
{{- end -}}
{{- $taken := dict "5671" "amqps" "5672" "pod" "8080" "health" "8443" "console" "55672" "routers" "45672" "edges" -}}
{{- $names := dict "amqps" true "http" true "console" true "inter-router" true "edge" true "interior" true -}}
{{- range $v.listeners -}}
{{- $port := toString (int .port) -}}
{{- if hasKey $taken $port -}}
{{- $faults = append $faults (printf "listeners: %s has port %s, which is that of %s: choose another one" .name $port (get $taken $port)) -}}
{{- end -}}
{{- if hasKey $names .name -}}
{{- $faults = append $faults (printf "listeners: the name %s is taken: choose another one" .name) -}}
{{- end -}}
{{- $_ := set $taken $port .name -}}
{{- $_ := set $names .name true -}}
{{- $mechanisms := toString (get (default dict .attributes) "saslMechanisms") -}}
{{- if and (eq (default "" .role) "edge") (not .users) (not (hasKey (default dict .attributes) "policyVhost")) (regexMatch "PLAIN|SCRAM|DIGEST|CRAM|LOGIN" $mechanisms) -}}
{{- $faults = append $faults (printf "listeners: %s lets edge routers log in with passwords: name their users, or every client could connect there as an edge router" .name) -}}
{{- end -}}
{{- if and (has (default "normal" .role) (list "edge" "inter-router")) (ne (default (include "trouter.front" $) .part) "interior") -}}
{{- $faults = append $faults (printf "listeners: %s is for routers, which connect to interior ones: set its part to interior" .name) -}}
{{- end -}}
{{- end -}}
{{- if and $v.operators (hasKey (dig "$default" "groups" dict $v.policy.vhosts) "operators") -}}
{{- $faults = append $faults "operators is set, and policy.vhosts.$default.groups has a group operators: leave out one of them" -}}
{{- end -}}
{{- if and $v.operators (not (hasKey $v.policy.vhosts "$default")) -}}
{{- $faults = append $faults "operators is set, and policy.vhosts has no $default, where their group would be" -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "\n\nThe values need a change (docs/kubernetes.md explains each):\n  - %s\n" (join "\n  - " $faults)) -}}
{{- end -}}
{{- end -}}
