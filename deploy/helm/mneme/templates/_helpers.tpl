{{- define "mneme.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/part-of: mneme
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "mneme.podLabels" -}}
app.kubernetes.io/name: {{ .name }}
{{- if .program }}
app.kubernetes.io/component: program
{{- end }}
app.kubernetes.io/part-of: mneme
{{- end }}

{{- define "mneme.selector" -}}
app.kubernetes.io/name: {{ .name }}
{{- if .program }}
app.kubernetes.io/component: program
{{- end }}
{{- end }}

{{- define "mneme.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The password of a user of NATS, as a variable. */}}
{{- define "mneme.natsPassword" -}}
valueFrom: {secretKeyRef: {name: {{ .root.Values.secrets.nats }}, key: {{ .user }}}}
{{- end }}

{{/* Every public address: models are reached over HTTPS. */}}
{{- define "mneme.publicEgress" -}}
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except: [10.0.0.0/8, 100.64.0.0/10, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16]
    - ipBlock:
        cidr: "::/0"
        except: ["fc00::/7", "fe80::/10"]
  ports:
    - {protocol: TCP, port: 443}
{{- end }}
