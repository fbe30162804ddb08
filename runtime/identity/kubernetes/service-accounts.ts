/**
 * Authenticates a client by the token of its service account, for the option `authenticate` of a server in a
 * cluster. jose checks signature, issuer, audience and times with the keys that the API server publishes.
 */
import { readFileSync } from 'node:fs';
import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { checkedOptions, type OptionRules } from '../../core/options.ts';
import { mounted } from '../../discovery/kubernetes/pod.ts';
import type { Authenticate } from '../../server/allowed.ts';
import { fetchOver } from './api-server.ts';
import { issuerOf } from './token.ts';

export interface ServiceAccountsOptions {
  /**
   * The accepted audiences, such as the name of this service. A token must have one of them. Tokens for the
   * API server itself are never accepted.
   */
  audience: string | readonly string[];
  /** The required issuer. Default: the issuer of this pod's token. */
  issuer?: string;
  /**
   * The keys with which tokens are signed, or the URL of these keys. Default: the keys that the API server of
   * this cluster publishes.
   */
  jwks?: JSONWebKeySet | URL;
  /**
   * The authorities, in PEM, that sign the certificate of the server at that URL. Default: this pod's
   * authorities for the API server.
   */
  ca?: string;
}

const rules: OptionRules = {
  audience: { kind: 'texts', maxBytes: 2048 },
  issuer: { kind: 'text', default: '', maxBytes: 2048 },
  jwks: { kind: 'source' },
  ca: { kind: 'pem' },
};

interface Checked extends Pick<ServiceAccountsOptions, 'jwks' | 'ca'> {
  readonly audience: string[] | undefined;
  readonly issuer: string;
}

const apiServer = new URL('https://kubernetes.default.svc/openid/v1/jwks');
/**
 * The accepted algorithms. All of these algorithms use public keys, so that a symmetric secret among the keys
 * cannot validate a signature.
 */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const account = /^system:serviceaccount:[^:]+:[^:]+$/;
const bearer = /^Bearer +([\w.-]+)$/i;

type Jose = typeof import('jose');

function keysOf(jose: Jose, { jwks = apiServer, ca }: Checked): JWTVerifyGetKey {
  if (!(jwks instanceof URL)) return jose.createLocalJWKSet(jwks);
  const own = jwks.href === apiServer.href;
  return jose.createRemoteJWKSet(jwks, {
    [jose.customFetch]: fetchOver({
      ca: ca ?? (() => readFileSync(mounted.ca, 'utf8')),
      // The pod's token is sent only to the API server, which returns its keys only to authenticated clients.
      ...(own && { token: () => readFileSync(mounted.token, 'utf8').trim() }),
    }),
  });
}

/**
 * Returns a function for the option `authenticate`. Clients get the identity
 * `system:serviceaccount:NAMESPACE:NAME`. Throws for invalid options.
 */
export function serviceAccounts(options: ServiceAccountsOptions): Authenticate {
  const checked = checkedOptions<Checked>('serviceAccounts', options, rules);
  const { audience } = checked;
  if (audience === undefined || audience.length === 0 || audience.includes(''))
    throw new TypeError('serviceAccounts: audience is missing: give the audience of the tokens');
  const { jwks } = checked;
  if (jwks instanceof URL && jwks.protocol !== 'https:')
    throw new TypeError(`serviceAccounts: jwks: ${jwks.href} is not https`);
  // jose is loaded here, because the resolver of this entry point works without it.
  const loaded = import('jose').then((jose) => ({ jose, keys: keysOf(jose, checked) }));
  loaded.catch(() => undefined);
  const wanted = (): string => checked.issuer || issuerOf(readFileSync(mounted.token, 'utf8'));
  return async (_, metadata) => {
    const [, token] = bearer.exec(String(metadata.get('authorization') ?? '')) ?? [];
    if (token === undefined) throw new Error('no token: the metadata needs "authorization: Bearer TOKEN"');
    const issuer = wanted();
    const { jose, keys } = await loaded;
    const { payload } = await jose.jwtVerify(token, keys, {
      audience,
      issuer,
      algorithms,
      requiredClaims: ['exp', 'sub'],
    });
    const { sub = '' } = payload;
    if (!account.test(sub))
      throw new Error(`the token is of ${JSON.stringify(sub)}, which is no service account`);
    return sub;
  };
}
