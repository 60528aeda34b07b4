{{/* The pod of a router; takes the root, the part and the file, in which Kubernetes expands $(POD_NAME). */}}
{{- define "trouter.pod" -}}
{{- $values := index .root.Values .part -}}
{{- $image := printf "%s:%s" .root.Values.image.repository (default .root.Chart.AppVersion .root.Values.image.tag) -}}
metadata:
  labels: {{- include "trouter.labels" . | nindent 4 }}
  annotations:
    checksum/configuration: {{ print (include "trouter.router" .root) (include "trouter.common" .) .root.Chart.Version | sha256sum }}
    {{- with .root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "trouter.name" .root }}
  automountServiceAccountToken: false
  # After TERM the router accepts nothing new, and lets deliveries finish for drainTimeoutSeconds.
  terminationGracePeriodSeconds: {{ add .root.Values.preStopSeconds .root.Values.drainTimeoutSeconds 15 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: {type: RuntimeDefault}
  {{- with .root.Values.imagePullSecrets }}
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
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "trouter.selector" . | nindent 10 }}
  initContainers:
    # A Secret is mounted as a symbolic link to a file that its group may read. The router requires a file of passwords that only
    # its own user may read.
    - name: users
      image: {{ $image }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      command: [install, -m, "0600", /secrets/users, /run/trouter/users]
      securityContext: &hardened
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: users, mountPath: /secrets, readOnly: true}
        - {name: run, mountPath: /run/trouter}
  containers:
    - name: router
      image: {{ $image }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: [run, -c, {{ .file | quote }}]
      env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
      ports:
        - {name: amqps, containerPort: 5671}
        - {name: http, containerPort: 8080}
        {{- if eq .part "interior" }}
        - {name: inter-router, containerPort: 55672}
        - {name: edge, containerPort: 45672}
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
        # Clients are directed to other pods before the router refuses them.
        preStop: {exec: {command: [sleep, {{ .root.Values.preStopSeconds | quote }}]}}
      resources: {{- toYaml $values.resources | nindent 8 }}
      securityContext: *hardened
      volumeMounts:
        - {name: configuration, mountPath: /etc/trouter/configuration, readOnly: true}
        - {name: network, mountPath: /etc/trouter/network, readOnly: true}
        - {name: clients, mountPath: /etc/trouter/clients, readOnly: true}
        - {name: run, mountPath: /run/trouter}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - name: configuration
      configMap: {name: {{ include "trouter.name" .root }}}
    - name: network
      secret: {secretName: {{ .root.Values.network.tlsSecret }}, defaultMode: 0440}
    - name: clients
      secret: {secretName: {{ .root.Values.clients.tlsSecret }}, defaultMode: 0440}
    - name: users
      secret: {secretName: {{ .root.Values.clients.usersSecret }}, defaultMode: 0440}
    - name: run
      emptyDir: {medium: Memory, sizeLimit: 16Mi}
    - name: tmp
      emptyDir: {sizeLimit: 64Mi}
{{- end -}}
