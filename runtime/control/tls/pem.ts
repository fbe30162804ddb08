/**
 * Checks the PEM texts in the TLS options, and explains their errors. OpenSSL does not name the option in its
 * errors, and silently ignores authorities that it cannot read. tls-options.ts uses this file.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { oneLine } from '../../core/log.ts';

/** PEM as text or bytes. */
export type Pem = string | Uint8Array;

export interface PemOptions {
  readonly cert?: Pem | undefined;
  readonly key?: Pem | undefined;
  readonly passphrase?: string | undefined;
  readonly ca?: Pem | readonly Pem[] | undefined;
  readonly crl?: Pem | readonly Pem[] | undefined;
}
type Name = Exclude<keyof PemOptions, 'passphrase'>;

/**
 * Returns the name of an option for errors. The file from which the option was read follows, if it is known.
 */
export type Called = (name: Name) => string;

export const bufferOf = (pem: Pem): string | Buffer =>
  typeof pem === 'string' ? pem : Buffer.from(pem.buffer, pem.byteOffset, pem.byteLength);
export const buffersOf = (pems: Pem | readonly Pem[]): (string | Buffer)[] =>
  ([pems].flat() as Pem[]).map(bufferOf);

/** The kinds of PEM blocks by their labels. */
const kinds = [
  ['certificate', /CERTIFICATE$/],
  ['private key', /PRIVATE KEY$/],
  ['list of revoked certificates', /CRL$/],
] as const;
const wanted: Readonly<Record<Name, (typeof kinds)[number][0]>> = {
  cert: 'certificate',
  key: 'private key',
  ca: 'certificate',
  crl: 'list of revoked certificates',
};

const kindOf = (label: string): string => kinds.find(([, labels]) => labels.test(label))?.[0] ?? label;
/**
 * Returns whether a text looks like a path instead of PEM. The error can mention that, but must not contain
 * the text itself, which may be a key.
 */
const isPathLike = (text: string): boolean => /^[^\n]{1,4096}$/.test(text) && /[/\\]|\.\w+$/.test(text);

/**
 * Throws a TypeError for a text without the parts that the option needs, and for unreadable authorities.
 */
export function checkPem(options: PemOptions, called: Called): void {
  for (const name of Object.keys(wanted) as Name[])
    for (const pem of buffersOf(options[name] ?? [])) checkText(name, called(name), String(pem));
}

function checkText(name: Name, where: string, text: string): void {
  const labels = [...text.matchAll(/-----BEGIN ([^\n-]+)-----/g)].map(([, label = '']) => label);
  if (labels.length === 0) {
    const hint = isPathLike(text) ? '; it looks like a path, and tlsFiles() is what reads files' : '';
    throw new TypeError(`${where}: no PEM text: it has no line -----BEGIN …-----${hint}`);
  }
  const found = labels.map(kindOf);
  const kind = wanted[name];
  if (!found.includes(kind)) throw new TypeError(`${where}: there is no ${kind} in it, but a ${found[0]}`);
  if (name === 'ca') checkAuthorities(where, text);
}

/**
 * Throws for an authority that cannot be read. OpenSSL silently ignores such an authority and all authorities
 * after it.
 */
function checkAuthorities(where: string, text: string): void {
  const begins = [...text.matchAll(/-----BEGIN [^\n-]*CERTIFICATE-----/g)];
  for (const [at, { index }] of begins.entries()) {
    try {
      new X509Certificate(text.slice(index, begins[at + 1]?.index));
    } catch (error) {
      const which = begins.length === 1 ? 'the certificate' : `certificate ${at + 1}`;
      throw new TypeError(`${where}: ${which} in it cannot be read (${saidBy(error)})`, { cause: error });
    }
  }
}

const saidBy = (error: unknown): string => oneLine((error as Error).message);

/**
 * Returns the error for options that OpenSSL rejects although their PEM texts are well-formed. The error
 * names the option.
 */
export function pemFault(error: unknown, options: PemOptions, called: Called): Error {
  const fault = (name: Name, text: string, cause = error): Error =>
    new TypeError(`${called(name)}: ${text}`, { cause });
  const { cert, key, passphrase, crl } = options;
  if (key !== undefined) {
    const text = String(bufferOf(key));
    const isEncrypted = /BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(text);
    if (isEncrypted && !passphrase) return fault('key', 'the key is encrypted: give passphrase');
    try {
      createPrivateKey({ key: text, ...(isEncrypted && { passphrase }) });
    } catch (cause) {
      const what = isEncrypted ? 'the passphrase does not decrypt the key' : 'the key cannot be read';
      return fault('key', `${what} (${saidBy(cause)})`, cause);
    }
  }
  const { code = '' } = error as NodeJS.ErrnoException;
  if (/_MISMATCH$/.test(code)) return fault('key', `the key does not belong to the cert (${saidBy(error)})`);
  if (crl !== undefined && /CRL/.test(saidBy(error))) return fault('crl', saidBy(error));
  return cert === undefined ? (error as Error) : fault('cert', saidBy(error));
}
