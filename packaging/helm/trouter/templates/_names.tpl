{{- define "trouter.name" -}}
{{- printf "%s-trouter" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the service of the interior routers, as other pods resolve it. */}}
{{- define "trouter.interiorHost" -}}
{{- printf "%s-interior.%s.svc.%s" (include "trouter.name" .) .Release.Namespace .Values.clusterDomain -}}
{{- end -}}

{{/* The name of the service that clients connect to. */}}
{{- define "trouter.clientsHost" -}}
{{- printf "%s.%s.svc" (include "trouter.name" .) .Release.Namespace -}}
{{- end -}}

{{/* "yes" if there are edge routers, else nothing. */}}
{{- define "trouter.hasEdges" -}}
{{- if or .Values.edge.autoscaling.enabled (gt (int .Values.edge.replicas) 0) }}yes{{ end -}}
{{- end -}}

{{/* Where clients connect: to edge routers, if there are any. */}}
{{- define "trouter.front" -}}
{{- if include "trouter.hasEdges" . }}edge{{ else }}interior{{ end -}}
{{- end -}}

{{/* Takes the root and the part: "yes" if one pod of it may be away while others serve. */}}
{{- define "trouter.isSeveral" -}}
{{- $scaled := and (eq .part "edge") .root.Values.edge.autoscaling.enabled -}}
{{- if or $scaled (gt (int (index .root.Values .part).replicas) 1) }}yes{{ end -}}
{{- end -}}

{{/* Takes the root and the part: the further listeners of that part, as `rows`. */}}
{{- define "trouter.listeners" -}}
{{- $part := .part -}}
{{- $front := include "trouter.front" .root -}}
{{- $rows := list -}}
{{- range .root.Values.listeners -}}
{{- if eq $part (default $front .part) -}}
{{- $rows = append $rows . -}}
{{- end -}}
{{- end -}}
{{- dict "rows" $rows | toJson -}}
{{- end -}}

{{/* The rights of a container, if the values give some. */}}
{{- define "trouter.containerSecurity" -}}
{{- with .Values.securityContext -}}
securityContext: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* "yes" if edge routers connect to the interior ones: those of the release, or others at a listener for them. */}}
{{- define "trouter.servesEdges" -}}
{{- $outside := false -}}
{{- range .Values.listeners -}}{{- if eq (default "" .role) "edge" -}}{{- $outside = true -}}{{- end -}}{{- end -}}
{{- if or $outside (include "trouter.hasEdges" .) }}yes{{ end -}}
{{- end -}}

{{- define "trouter.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "trouter.networkSecret" -}}
{{- default (printf "%s-network" (include "trouter.name" .)) .Values.network.tlsSecret -}}
{{- end -}}

{{- define "trouter.clientsSecret" -}}
{{- default (printf "%s-clients" (include "trouter.name" .)) .Values.clients.tlsSecret -}}
{{- end -}}

{{/* Takes the root and the part, interior or edge. */}}
{{- define "trouter.selector" -}}
app.kubernetes.io/name: trouter
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "trouter.labels" -}}
{{ include "trouter.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}
