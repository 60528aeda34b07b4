{{/* The pod of a router; takes the root, the part and the file, in which Kubernetes expands $(POD_NAME). */}}
{{- define "trouter.pod" -}}
{{- $all := .root.Values -}}
{{- $values := index $all .part -}}
{{- $part := . -}}
metadata:
  labels: {{- include "trouter.labels" . | nindent 4 }}
  annotations:
    checksum/configuration: {{ print (include "trouter.router" .root) (include "trouter.common" .) (toJson $all.edge.uplinks) .root.Chart.Version | sha256sum }}
    {{- with merge (deepCopy $values.podAnnotations) $all.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "trouter.name" .root }}
  automountServiceAccountToken: false
  # After TERM the router accepts nothing new, and lets deliveries finish for drainTimeoutSeconds.
  terminationGracePeriodSeconds: {{ add $all.preStopSeconds $all.drainOverSeconds $all.drainTimeoutSeconds 20 }}
  {{- with $all.podSecurityContext }}
  securityContext: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $all.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $all.topologySpread.keys }}
  topologySpreadConstraints:
    {{- range . }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: {{ $all.topologySpread.whenUnsatisfiable }}
      labelSelector:
        matchLabels: {{- include "trouter.selector" $part | nindent 10 }}
    {{- end }}
  {{- end }}
  containers:
    - name: router
      image: {{ include "trouter.image" .root }}
      imagePullPolicy: {{ $all.image.pullPolicy }}
      args: [run, -c, {{ .file | quote }}]
      env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- with concat $all.extraEnv $values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {name: amqps, containerPort: 5671}
        - {name: http, containerPort: 8080}
        {{- if $all.console.enabled }}
        - {name: console, containerPort: 8443}
        {{- end }}
        {{- if eq .part "interior" }}
        - {name: inter-router, containerPort: 55672}
        - {name: edge, containerPort: 45672}
        {{- end }}
        {{- range (include "trouter.listeners" . | fromJson).rows }}
        - {name: {{ .name }}, containerPort: {{ .port }}}
        {{- end }}
      startupProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: 1
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 2
      lifecycle:
        # New clients are directed to other pods before the router refuses them; then those that it has are sent away.
        {{- if $all.drainOverSeconds }}
        preStop:
          exec:
            command: [sh, -c, "sleep {{ $all.preStopSeconds }}; exec trouter drain --over {{ $all.drainOverSeconds }}s -b 127.0.0.1:5672"]
        {{- else }}
        preStop: {exec: {command: [sleep, {{ $all.preStopSeconds | quote }}]}}
        {{- end }}
      resources: {{- toYaml $values.resources | nindent 8 }}
      {{- include "trouter.containerSecurity" .root | nindent 6 }}
      volumeMounts:
        - {name: configuration, mountPath: /etc/trouter/configuration, readOnly: true}
        - {name: network, mountPath: /etc/trouter/network, readOnly: true}
        - {name: clients, mountPath: /etc/trouter/clients, readOnly: true}
        - {name: users, mountPath: /etc/trouter/users, readOnly: true}
        - {name: tmp, mountPath: /tmp}
        {{- range (include "trouter.listeners" . | fromJson).rows }}
        {{- if .tlsSecret }}
        - {name: listener-{{ .name }}, mountPath: /etc/trouter/listeners/{{ .name }}, readOnly: true}
        {{- end }}
        {{- if .authoritySecret }}
        - {name: authority-{{ .name }}, mountPath: /etc/trouter/authorities/{{ .name }}, readOnly: true}
        {{- end }}
        {{- end }}
        {{- with concat $all.extraVolumeMounts $values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: configuration
      configMap: {name: {{ include "trouter.name" .root }}}
    # Of each Secret the router gets only the keys that it reads, and nothing is copied; the router notices changes by itself.
    - name: network
      secret:
        secretName: {{ include "trouter.networkSecret" .root }}
        defaultMode: 0440
        items: [{key: ca.crt, path: ca.crt}, {key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
    - name: clients
      secret:
        secretName: {{ include "trouter.clientsSecret" .root }}
        defaultMode: 0440
        items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
    - name: users
      secret: {secretName: {{ $all.clients.usersSecret }}, defaultMode: 0440, items: [{key: users, path: users}]}
    - name: tmp
      emptyDir: {sizeLimit: 64Mi}
    {{- range (include "trouter.listeners" . | fromJson).rows }}
    {{- if .tlsSecret }}
    - name: listener-{{ .name }}
      secret: {secretName: {{ .tlsSecret }}, defaultMode: 0440, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
    {{- end }}
    {{- if .authoritySecret }}
    - name: authority-{{ .name }}
      secret: {secretName: {{ .authoritySecret }}, defaultMode: 0440, items: [{key: ca.crt, path: ca.crt}]}
    {{- end }}
    {{- end }}
    {{- with concat $all.extraVolumes $values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
