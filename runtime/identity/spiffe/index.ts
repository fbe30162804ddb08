/**
 * `rdma-rpc/spiffe`: certificates of an agent of SPIFFE (such as SPIRE) for the option `tls` of servers and
 * channels, renewed as it says. Needs `@grpc/grpc-js`, an optional peer dependency, by which the agent is
 * asked.
 */
export { createWorkload } from './workload.ts';
export type { ExpectedServer, Workload, WorkloadOptions } from './workload-type.ts';
