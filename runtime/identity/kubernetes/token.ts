/**
 * The token of a pod's service account, for the option `credentials` of a channel. The kubelet renews the
 * token in its file.
 */
import { readFile } from 'node:fs/promises';
import type { CredentialsSource } from '../../client/credentials.ts';

/** Returns the unverified claims of a token. Throws when it is not a token. */
export function claimsOf(token: string): Readonly<Record<string, unknown>> {
  const [, payload = '', signature] = token.trim().split('.');
  const claims = signature === undefined ? undefined : parsed(Buffer.from(payload, 'base64url').toString());
  // The error does not show the content of the file, which may be part of a secret.
  if (claims === undefined) throw new Error('the file does not contain a token');
  return claims;
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isTable = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isTable ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the issuer of this pod's token. Throws when the token has none. */
export function issuerOf(token: string): string {
  const { iss } = claimsOf(token);
  if (typeof iss === 'string' && iss !== '') return iss;
  throw new Error('the token of this pod names no issuer: give serviceAccounts the option issuer');
}

/**
 * Returns a function for `credentials: { session }`. `file` is the path of a token that is projected for the
 * audience of the server. Shortly before the token expires, the next connection reads the file again.
 */
export function serviceAccountToken(file: string): CredentialsSource {
  if (typeof file !== 'string' || file === '')
    throw new TypeError('serviceAccountToken: file: the path of a projected token is missing');
  return async () => {
    const token = (await readFile(file, 'utf8')).trim();
    const { exp } = claimsOf(token);
    return {
      metadata: { authorization: `Bearer ${token}` },
      ...(typeof exp === 'number' && { expiresAtMs: exp * 1000 }),
    };
  };
}
