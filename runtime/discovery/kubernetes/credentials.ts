/**
 * The credentials of requests to the API server. They come from the files of a pod, or from a KubeConfig of
 * `@kubernetes/client-node`, which supports kubeconfig files, their exec plug-ins and cloud logins. This file
 * imports nothing of that package; an application that uses it passes the KubeConfig object.
 */
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { apiServerUrl, mounted } from './pod.ts';

/** The part of a KubeConfig that is used here. */
export interface KubeConfigSource {
  getCurrentCluster(): { readonly server: string } | null;
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}

export interface ApiServerOptions {
  /** A KubeConfig of `@kubernetes/client-node`, after one of its `loadFrom…` functions. */
  kubeConfig?: KubeConfigSource;
  /** `https://host:port` of the API server. Default: the API server of this pod's cluster. */
  server?: string;
  /** The authorities that sign the certificate of the API server, as PEM. Default: the file of this pod. */
  ca?: string | Uint8Array;
  /** The file with the token of a service account. Default: the file of this pod. */
  tokenFile?: string;
}

/** Returns the address of the API server and the credentials of a request. It is called for each request. */
export type Access = () => Promise<{ readonly server: string; readonly options: RequestOptions }>;

function byKubeConfig(what: string, kubeConfig: KubeConfigSource): Access {
  return async () => {
    const server = kubeConfig.getCurrentCluster()?.server;
    if (typeof server !== 'string') throw new Error(`${what}: the KubeConfig has no current cluster`);
    const options: RequestOptions = {};
    await kubeConfig.applyToHTTPSOptions(options);
    return { server, options };
  };
}

/**
 * Throws when no API server is known, or when it has no TLS and would therefore get the token unencrypted.
 */
export function accessOf(what: string, given: ApiServerOptions): Access {
  const { kubeConfig, server = apiServerUrl(), ca, tokenFile = mounted.token } = given;
  if (kubeConfig !== undefined) {
    if (typeof kubeConfig.applyToHTTPSOptions !== 'function')
      throw new TypeError(`${what}: kubeConfig is no KubeConfig of @kubernetes/client-node`);
    return byKubeConfig(what, kubeConfig);
  }
  if (server === undefined)
    throw new TypeError(
      `${what}: this process is not in a pod; give the option kubeConfig, or server, ca and tokenFile`,
    );
  if (!server.startsWith('https://')) throw new TypeError(`${what}: server: ${server} is not https`);
  return async () => {
    const [token, authorities] = await Promise.all([readFile(tokenFile, 'utf8'), ca ?? readFile(mounted.ca)]);
    const headers = { authorization: `Bearer ${token.trim()}` };
    return { server, options: { headers, ca: Buffer.from(authorities as string) } };
  };
}
