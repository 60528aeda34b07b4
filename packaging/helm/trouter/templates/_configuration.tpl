{{/* A value of an attribute of trouter.conf. */}}
{{- define "trouter.value" -}}
{{- if kindIs "bool" . }}{{ ternary "yes" "no" . }}{{ else if not (kindIs "string" .) }}{{ int64 . }}{{ else }}{{ . | toString | quote }}{{ end -}}
{{- end -}}

{{/* A vhost; takes its name as hostname, and its values as vhost. */}}
{{- define "trouter.vhost" -}}
vhost {
    hostname: {{ .hostname | quote }}
    {{- range $key, $value := omit .vhost "groups" }}
    {{ $key }}: {{ include "trouter.value" $value }}
    {{- end }}
    groups: {
        {{- range $name, $group := .vhost.groups }}
        {{ $name | quote }}: {
            {{- range $key, $value := $group }}
            {{ $key }}: {{ include "trouter.value" $value }}
            {{- end }}
        }
        {{- end }}
    }
}
{{- end -}}

{{/* The sections of every router; takes the root and the part, interior or edge. */}}
{{- define "trouter.common" -}}
{{- $values := .root.Values -}}
{{- $joined := and (eq .part "interior") (include "trouter.hasEdges" .root) -}}
sslProfile {
    name: network
    certFile: /etc/trouter/network/tls.crt
    privateKeyFile: /etc/trouter/network/tls.key
    caCertFile: /etc/trouter/network/ca.crt
}
sslProfile {
    name: clients
    certFile: /etc/trouter/clients/tls.crt
    privateKeyFile: /etc/trouter/clients/tls.key
}
listener {
    name: amqps
    host: 0.0.0.0
    port: 5671
    sslProfile: clients
    saslMechanisms: {{ $values.clients.saslMechanisms }}
    {{- with $values.clients.proxyProtocolHosts }}
    proxyProtocolHosts: {{ . }}
    {{- end }}
    {{- if $joined }}
    policyVhost: $default
    {{- end }}
}
{{- if $values.console.enabled }}
listener {
    name: console
    host: 0.0.0.0
    port: 8443
    http: yes
    sslProfile: clients
    saslMechanisms: {{ $values.clients.saslMechanisms }}
    metrics: no
    healthz: no
    {{- if $joined }}
    policyVhost: $default
    {{- end }}
}
{{- end }}
# For commands that are run in the pod: `kubectl exec POD -c router -- trouter stat`, and the drain before it stops.
# trouter: accept authenticate-peer: only who may run commands in the pod reaches its loopback address
listener {
    name: pod
    host: 127.0.0.1
    port: 5672
    authenticatePeer: no
    saslMechanisms: ANONYMOUS
    policyVhost: pod
}
vhost {
    hostname: pod
    allowUnknownUser: yes
    groups: {
        $default: {
            remoteHosts: 127.0.0.1
            targets: $management, _topo/*, _edge/*
            allowDynamicSource: yes
            allowAnonymousSender: yes
            management: admin
        }
    }
}
# Health and metrics; the NetworkPolicy admits only the cluster.
# trouter: accept authenticate-peer: probes and Prometheus have no login; the listener has pages only, and no AMQP
# trouter: accept require-tls: the probes of Kubernetes and Prometheus read the pages in clear within the cluster
# trouter: accept health-for-others: Kubernetes asks from the address of its node
listener {
    name: health
    host: 0.0.0.0
    port: 8080
    http: yes
    websockets: no
    healthz: yes
    requireSsl: no
    authenticatePeer: no
    saslMechanisms: ANONYMOUS
}
{{- range $hostname, $vhost := $values.policy.vhosts }}
{{- if and (eq $hostname "$default") $values.operators }}
{{- $operators := dict "users" (join ", " $values.operators) "remoteHosts" "*" "sources" "*" "targets" "*" "allowDynamicSource" true "allowAnonymousSender" true "management" "admin" }}
{{- $vhost = set (deepCopy $vhost) "groups" (set (deepCopy $vhost.groups) "operators" $operators) }}
{{- end }}
{{ include "trouter.vhost" (dict "hostname" $hostname "vhost" $vhost) }}
{{- end }}
{{- with $values.extraConfiguration }}
{{ . }}
{{- end }}
{{- with (index $values .part).extraConfiguration }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "trouter.router" -}}
secureDefaults: yes
usersFile: /run/trouter/users
drainTimeoutSeconds: {{ .Values.drainTimeoutSeconds }}
{{- end -}}
