/**
 * The data that the kubelet puts into each pod for access to the API server (Kubernetes: "Accessing the API
 * from a Pod").
 */

const folder = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet renews the token in its file. `namespace` is the namespace of the pod. */
export const mounted = {
  token: `${folder}/token`,
  ca: `${folder}/ca.crt`,
  namespace: `${folder}/namespace`,
} as const;

/** Returns the URL of the API server for pods, or undefined outside of a cluster. */
export function apiServerUrl(): string | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  if (!host || !port) return undefined;
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
