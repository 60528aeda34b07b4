{{- define "trouter.name" -}}
{{- printf "%s-trouter" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the service of the interior routers, as other pods resolve it. */}}
{{- define "trouter.interiorHost" -}}
{{- printf "%s-interior.%s.svc.%s" (include "trouter.name" .) .Release.Namespace .Values.clusterDomain -}}
{{- end -}}

{{/* Where clients connect: to edge routers, if there are any. */}}
{{- define "trouter.front" -}}
{{- if gt (int .Values.edge.replicas) 0 }}edge{{ else }}interior{{ end -}}
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
