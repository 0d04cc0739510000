{{- define "axil.labels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}
{{- define "axil.deployment" -}}
{{- $v := .root.Values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels: {{- include "axil.labels" . | nindent 4 }}
spec:
  {{- if or (eq $v.autoscaling.kind "none") (ne .component "worker") }}
  replicas: {{ .replicas }}
  {{- end }}
  # a run that is at work is ended in order, and taken over by another one
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  selector:
    matchLabels: {{- include "axil.labels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "axil.labels" . | nindent 8 }}
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "9464"
        prometheus.io/path: /metrics
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 30
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        seccompProfile: {type: RuntimeDefault}
      topologySpreadConstraints:
        {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - maxSkew: 1
          topologyKey: {{ $key }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "axil.labels" $ | nindent 14 }}
        {{- end }}
      {{- with $v.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ $v.image | quote }}
          args: {{ .command | toJson }}
          ports:
            - {name: status, containerPort: 9464}
            {{- if eq .component "serve" }}
            - {name: http, containerPort: 8000}
            {{- end }}
          env:
            - name: AXIL_JOURNAL
              value: {{ required "journal is not set" $v.journal | quote }}
            {{- with $v.directJournal }}
            - {name: AXIL_JOURNAL_DIRECT, value: {{ . | quote }}}
            {{- end }}
            {{- with $v.retainDays }}
            - {name: AXIL_JOURNAL_RETAIN_DAYS, value: {{ . | quote }}}
            {{- end }}
            - {name: PYTHONPATH, value: {{ $v.flows | quote }}}
            - name: PGPASSWORD
              valueFrom:
                secretKeyRef: {{ $v.passwordSecret | toJson }}
            {{- with $v.journalKeySecret }}
            - name: AXIL_JOURNAL_KEY
              valueFrom:
                secretKeyRef: {{ . | toJson }}
            {{- end }}
            {{- if eq .component "serve" }}
            - name: AXIL_SERVE_TOKEN
              valueFrom:
                secretKeyRef: {{ $v.serve.tokenSecret | toJson }}
            {{- end }}
            {{- with $v.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          startupProbe:
            httpGet: {path: /healthz, port: status}
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /healthz, port: status}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 3
          readinessProbe:
            httpGet: {path: /readyz, port: status}
            periodSeconds: 5
            timeoutSeconds: 6
          resources: {{ .resources | toJson }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: work, mountPath: /tmp}
      volumes:
        - name: work
          emptyDir: {sizeLimit: {{ $v.workSize | quote }}}
{{- end }}
{{- define "axil.disruption" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels: {{- include "axil.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "axil.labels" . | nindent 6 }}
{{- end }}
