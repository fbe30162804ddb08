/**
 * How requests to the API server prove who they are: by the files of a pod, or by a KubeConfig of
 * `@kubernetes/client-node`, which knows kubeconfig files, their exec plug-ins and cloud logins. Nothing of
 * that package is imported: the application that wants it passes its object.
 */
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { apiServerUrl, mounted } from './pod.ts';

/** The used part of a KubeConfig. */
export interface KubeConfigSource {
  getCurrentCluster(): { readonly server: string } | null;
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}

export interface ApiServerOptions {
  /** A KubeConfig of `@kubernetes/client-node`, after one of its `loadFrom…` functions. */
  kubeConfig?: KubeConfigSource;
  /** `https://host:port` of the API server. Default: that of the cluster of this pod. */
  server?: string;
  /** PEM: the authorities that sign the certificate of the API server. Default: the file of this pod. */
  ca?: string | Uint8Array;
  /** The file with the token of a service account. Default: the file of this pod. */
  tokenFile?: string;
}

/** Returns where the API server is and what a request to it needs; asked again for each request. */
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

/** Throws when there is no API server, or one without TLS, which would be shown the token. */
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
