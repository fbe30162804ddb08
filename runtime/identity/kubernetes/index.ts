/**
 * `rdma-rpc/kubernetes`: authenticates clients by the token of their service account, which the cluster
 * projects into their pods. It needs `jose`, an optional peer dependency, which verifies the tokens.
 */
export { type ServiceAccountsOptions, serviceAccounts } from './service-accounts.ts';
export { serviceAccountToken } from './token.ts';
