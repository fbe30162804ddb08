/** The options for reaching etcd, which the resolver and registrations share. */
import type { OptionRules } from '../../core/options.ts';

export interface EtcdOptions {
  /**
   * The members of the cluster, each as `http://host:port`, `https://host:port` or `host:port` (without TLS).
   * One member is used at a time. After a failure, the next member is used.
   */
  endpoints: string | readonly string[];
  /**
   * The authorities that sign the members' certificates, as PEM. Default: the authorities that Node.js
   * trusts.
   */
  ca?: string | Uint8Array;
  /** The certificate and key of this client, as PEM, for an etcd that requires a client certificate. */
  cert?: string | Uint8Array;
  key?: string | Uint8Array;
  /** Name and password, for a cluster with authentication. */
  username?: string;
  password?: string;
}

/** The checked options. */
export interface ResolvedEtcdOptions extends Omit<EtcdOptions, 'endpoints'> {
  readonly endpoints: readonly string[] | undefined;
  readonly username: string;
  readonly password: string;
}

export const etcdRules: OptionRules = {
  endpoints: { kind: 'texts', maxBytes: 2048 },
  ca: { kind: 'pem' },
  cert: { kind: 'pem' },
  key: { kind: 'pem' },
  username: { kind: 'text', default: '', maxBytes: 2048 },
  password: { kind: 'text', default: '', maxBytes: 65_536 },
};

/** Returns the service without a trailing slash. Throws a TypeError when the service is missing. */
export function checkedService(what: string, service: string): string {
  const name = service.replace(/\/+$/, '');
  if (name === '') throw new TypeError(`${what}: service is missing: give the name of the service in etcd`);
  return name;
}
