/** How to reach etcd: the options that the resolver and registrations share. */
import type { OptionRules } from '../../core/options.ts';

export interface EtcdOptions {
  /**
   * The members of the cluster, each as `http://host:port`, `https://host:port` or `host:port` (without TLS).
   * One is used at a time; the next one after a failure.
   */
  endpoints: string | readonly string[];
  /** PEM: the authorities that sign the members' certificates. Default: those that Node.js knows. */
  ca?: string | Uint8Array;
  /** PEM: the certificate and key of this client, where etcd asks for one. */
  cert?: string | Uint8Array;
  key?: string | Uint8Array;
  /** For a cluster with authentication by name and password. */
  username?: string;
  password?: string;
}

/** The same, checked. */
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

/** Returns the service without a slash at its end. Throws a TypeError when it is missing. */
export function checkedService(what: string, service: string): string {
  const name = service.replace(/\/+$/, '');
  if (name === '') throw new TypeError(`${what}: service is missing: give the name of the service in etcd`);
  return name;
}
