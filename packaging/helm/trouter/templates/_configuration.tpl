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

{{/* The users that are routers of the network: those given, else of cert-manager's certificate, else all of its authority. */}}
{{- define "trouter.routers" -}}
{{- $own := ternary (printf "CN=%s" (include "trouter.name" . | trunc 64)) "*" .Values.certManager.enabled -}}
{{- .Values.network.allowedUsers | default $own -}}
{{- end -}}

{{/* A further listener and its profile; takes the row of the values, whether its part has a vhost for edge routers,
and the users that are routers of the network. */}}
{{- define "trouter.listener" -}}
{{- $row := .listener -}}
{{- $role := default "normal" $row.role -}}
{{- $between := or (eq $role "edge") (eq $role "inter-router") -}}
{{- $given := default dict $row.attributes -}}
{{- $own := or $row.tlsSecret $row.authoritySecret -}}
{{- if $own -}}
{{- $folder := ternary (printf "/etc/trouter/listeners/%s" $row.name) (ternary "/etc/trouter/network" "/etc/trouter/clients" $between) (not (empty $row.tlsSecret)) -}}
sslProfile {
    name: listener-{{ $row.name }}
    certFile: {{ $folder }}/tls.crt
    privateKeyFile: {{ $folder }}/tls.key
    {{- if $row.authoritySecret }}
    caCertFile: /etc/trouter/authorities/{{ $row.name }}/ca.crt
    {{- end }}
}
{{ end -}}
listener {
    name: {{ $row.name }}
    host: 0.0.0.0
    port: {{ $row.port }}
    role: {{ $role }}
    sslProfile: {{ if $own }}listener-{{ $row.name }}{{ else }}{{ ternary "network" "clients" $between }}{{ end }}
    {{- if not (hasKey $given "saslMechanisms") }}
    saslMechanisms: {{ ternary "EXTERNAL" "SCRAM-SHA-512 SCRAM-SHA-256 PLAIN" $between }}
    {{- end }}
    {{- if and (eq $role "inter-router") (not (hasKey $given "allowedUsers")) }}
    allowedUsers: {{ ternary "*" .routers (not (empty $row.authoritySecret)) | quote }}
    {{- end }}
    {{- if and (eq $role "edge") $row.users (not (hasKey $given "allowedUsers")) }}
    allowedUsers: {{ join ", " $row.users | quote }}
    {{- end }}
    {{- range $key, $value := $given }}
    {{ $key }}: {{ include "trouter.value" $value }}
    {{- end }}
    {{- if and (eq $role "edge") (not (hasKey $given "policyVhost")) }}
    policyVhost: edges{{ if $row.users }}-{{ $row.name }}{{ end }}
    {{- else if and .joined (not $between) (not (hasKey $given "policyVhost")) }}
    policyVhost: $default
    {{- end }}
}
{{- if and (eq $role "edge") $row.users }}
{{ include "trouter.edges" (dict "hostname" (printf "edges-%s" $row.name) "users" $row.users) }}
{{- end }}
{{- end -}}

{{/* What edge routers need for their clients, whose rights the edge routers check; takes the hostname, and the users of the
edge routers, if they are not known by their certificates. */}}
{{- define "trouter.edges" -}}
{{- $rights := dict "remoteHosts" "*" "sources" "*" "targets" "*" "allowDynamicSource" true "allowAnonymousSender" true "allowUserIdProxy" true "allowDynamicLinkRoutes" true -}}
{{- $group := ternary (dict "edges" (merge (dict "users" (join ", " (default list .users))) $rights)) (dict "$default" $rights) (not (empty .users)) -}}
{{- include "trouter.vhost" (dict "hostname" .hostname "vhost" (dict "allowUnknownUser" (empty .users) "groups" $group)) -}}
{{- end -}}

{{/* The sections of every router; takes the root and the part, interior or edge. */}}
{{- define "trouter.common" -}}
{{- $values := .root.Values -}}
{{- $joined := and (eq .part "interior") (include "trouter.servesEdges" .root) -}}
{{- $routers := include "trouter.routers" .root -}}
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
    {{- range $key, $value := $values.clients.attributes }}
    {{ $key }}: {{ include "trouter.value" $value }}
    {{- end }}
    {{- if $joined }}
    policyVhost: $default
    {{- end }}
}
{{- range (include "trouter.listeners" . | fromJson).rows }}
{{ include "trouter.listener" (dict "listener" . "joined" $joined "routers" $routers) }}
{{- end }}
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
# trouter: accept metrics-for-others: the NetworkPolicy says who reaches the port
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
    {{- if $values.serviceMonitor.enabled }}
    {{- $service := printf "%s-metrics" (include "trouter.name" .root) }}
    {{- $space := printf "%s.%s" $service .root.Release.Namespace }}
    allowedHosts: {{ $service }}, {{ $space }}, {{ $space }}.svc, {{ $space }}.svc.{{ $values.clusterDomain }}
    {{- end }}
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
usersFile: /etc/trouter/users/users
drainTimeoutSeconds: {{ .Values.drainTimeoutSeconds }}
{{- end -}}
