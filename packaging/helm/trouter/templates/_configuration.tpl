{{/* The sections of every router; takes the root and the part, interior or edge. */}}
{{- define "trouter.common" -}}
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
    saslMechanisms: SCRAM-SHA-512 SCRAM-SHA-256 PLAIN
    {{- if and (eq .part "interior") (gt (int .root.Values.edge.replicas) 0) }}
    policyVhost: $default
    {{- end }}
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
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: {
        $default: {
            remoteHosts: *
            # Addresses under the user's own name; and answers to those who ask, whose addresses cannot be guessed.
            sourcePattern: "${user}/*/#"
            targetPattern: "${user}/*/#, _edge/*/temp/*, amqp:/_edge/*/temp/*, _topo/0/*/temp/*, amqp:/_topo/0/*/temp/*"
            allowDynamicSource: yes
            allowAnonymousSender: yes
        }
        {{- with .root.Values.operators }}
        operators: {
            users: {{ join ", " . }}
            remoteHosts: *
            sources: *
            targets: *
            allowDynamicSource: yes
            allowAnonymousSender: yes
            management: admin
        }
        {{- end }}
    }
}
{{ .root.Values.extraConfiguration }}
{{- end -}}

{{- define "trouter.router" -}}
secureDefaults: yes
usersFile: /run/trouter/users
drainTimeoutSeconds: {{ .Values.drainTimeoutSeconds }}
{{- end -}}
