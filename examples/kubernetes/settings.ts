/** The settings that the manifests of this folder and the programs share. A test compares the two. */

/**
 * Ports of the server's pods. The metrics of a client have the same port. 0 takes any free port, for tests.
 */
export const ports = { rpc: 5000, probes: 8080, metrics: 9464 };

/** The path at which Prometheus reads the metrics. */
export const metricsPath = '/metrics';

/**
 * The time in ms that calls in flight may take when a pod ends. It is shorter than the grace period of the
 * pod.
 */
export const graceMs = 30_000;

/** The Service of the servers, and its port for calls. */
export const service = { service: 'greeter', port: 'rpc' };
