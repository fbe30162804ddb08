/**
 * `rdma-rpc/etcd`: finds servers in etcd and registers servers there, in the format of etcd's Go package
 * naming/endpoints. Needs `@grpc/grpc-js`, an optional peer dependency, to talk to etcd.
 */
export type { EtcdOptions } from './options.ts';
export { type Registrable, type Registration, type RegistrationOptions, register } from './registration.ts';
export { type EtcdResolverOptions, etcd } from './resolver.ts';
