/**
 * `rdma-rpc/kubernetes`: finds the pods of a service by its EndpointSlices, and authenticates clients by the
 * token of their service account, as the cluster projects it into pods. The authentication needs `jose`, an
 * optional peer dependency, which verifies the tokens.
 */
export type { ApiServerOptions, KubeConfigSource } from '../../discovery/kubernetes/credentials.ts';
export { type EndpointSlicesOptions, endpointSlices } from '../../discovery/kubernetes/endpoint-slices.ts';
export { type ServiceAccountsOptions, serviceAccounts } from './service-accounts.ts';
export { serviceAccountToken } from './token.ts';
