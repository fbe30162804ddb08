/**
 * `rdma-rpc/spiffe`: certificates from a SPIFFE agent (such as SPIRE) for the option `tls` of servers and
 * channels. They are renewed when the agent renews them. The module needs `@grpc/grpc-js`, an optional peer
 * dependency, to talk to the agent.
 */
export { createWorkload } from './workload.ts';
export type { ExpectedServer, Workload, WorkloadOptions } from './workload-type.ts';
