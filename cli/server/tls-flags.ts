/**
 * Flags of the commands that connect to a server: for TLS, for the credentials that the server's
 * `authenticate` checks, and for the minimum security of a session. connection.ts and `rdma-rpc bench` use
 * this file on the main thread.
 */
import { type Command, Option } from '#commander';
import { readInput } from '../../codegen/source/files.ts';
import type { ChannelOptions } from '../../runtime/client/channel-options.ts';
import { type SecurityLevel, securityRules } from '../../runtime/control/security-level.ts';
import { type ChannelTls, type TlsFiles, tlsFiles } from '../../runtime/control/tls/tls-options.ts';
import type { MetadataValue } from '../../runtime/core/metadata.ts';
import { metadataPair } from './metadata-flag.ts';

/** The values of the flags: paths of files, and the names of the server and of the identity. */
export interface TlsFlags {
  readonly tls?: true;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly passphraseFile?: string;
  readonly pskFile?: string;
  readonly servername?: string;
  readonly identity?: string;
  readonly credential: [string, MetadataValue][];
  readonly require?: SecurityLevel;
}

const names = ['ca', 'cert', 'key', 'pskFile', 'servername', 'identity'] as const;

/**
 * Adds the flags. In their descriptions `own` and `peer` name this side and the other side, and `dialing`
 * begins the description of a flag that only the side that connects has.
 */
export function withTlsFlags(
  command: Command,
  { own, peer, dialing } = {
    own: 'this client, for servers that require one',
    peer: 'the server',
    dialing: '',
  },
): Command {
  return command
    .option(
      '--tls',
      `${dialing}use TLS with the authorities that Node trusts; --ca, --cert, --psk-file, --servername and --identity imply it`,
    )
    .option('--ca <file>', `PEM file: the authorities that may have signed the certificate of ${peer}`)
    .option('--cert <file>', `PEM file: the certificate of ${own}; needs --key`)
    .option('--key <file>', 'PEM file: the private key of --cert')
    .option('--passphrase-file <file>', 'file whose first line is the passphrase of the key in --key')
    .option('--psk-file <file>', 'use a shared secret instead of certificates; the file has a line NAME:HEX')
    .option(
      '--servername <name>',
      `${dialing}name that the server's certificate must have; default: the host of the address`,
    )
    .option(
      '--identity <id>',
      `${dialing}identity that the server must have instead of a name, such as a SPIFFE id`,
    )
    .option(
      '--credential <key=value>',
      `${dialing}value for the server's \`authenticate\`, sent only over TLS and unix sockets; may be repeated`,
      metadataPair,
      [],
    )
    .addOption(
      new Option('--require <level>', 'minimum security of the session').choices([
        ...securityRules.require.values,
      ]),
    );
}

const wantsTls = (flags: TlsFlags): boolean =>
  flags.tls === true || names.some((name) => flags[name] !== undefined);

/**
 * Returns the passphrase from the file of --passphrase-file, as an option of `tls`. Throws a TypeError for a
 * file that cannot be read.
 */
export function passphraseOf({ passphraseFile }: TlsFlags): { passphrase?: string } {
  if (passphraseFile === undefined) return {};
  try {
    return { passphrase: readInput(passphraseFile).toString('utf8').split(/\r?\n/, 1)[0]! };
  } catch (error) {
    throw new TypeError(`--passphrase-file: ${(error as Error).message}`, { cause: error });
  }
}

/** Describes an error in a TLS file by the flag that names the file, if that flag is known. */
function fileFault(text: string, pskFile: string | undefined): string {
  if (pskFile !== undefined) return `--psk-file: ${text.replace(/^psk /, '')}`;
  if (!/^(ca|cert|key) /.test(text)) return `--ca, --cert or --key: ${text}`;
  return `--${text.replace(/: give passphrase$/, ': give --passphrase-file')}`;
}

/**
 * Returns options for a channel. Throws a TypeError for flags that contradict each other, and for files that
 * cannot be read or used; the error names the file.
 */
export function securityOf(flags: TlsFlags): Pick<ChannelOptions, 'tls' | 'credentials' | 'security'> {
  const { cert, key, passphraseFile, pskFile, servername, identity, credential, require } = flags;
  if (cert !== undefined && key === undefined) throw new TypeError('--cert needs --key');
  if (key !== undefined && cert === undefined) throw new TypeError('--key needs --cert');
  if (passphraseFile !== undefined && key === undefined) throw new TypeError('--passphrase-file needs --key');
  const files: TlsFiles = {};
  for (const name of ['ca', 'cert', 'key'] as const) if (flags[name] !== undefined) files[name] = flags[name];
  if (pskFile !== undefined) files.psk = pskFile;
  const more: ChannelTls = {
    ...passphraseOf(flags),
    ...(servername !== undefined && { servername }),
    ...(identity !== undefined && { identity }),
  };
  let tls: ChannelTls | undefined;
  try {
    if (wantsTls(flags)) tls = tlsFiles(files, more)();
  } catch (error) {
    throw new TypeError(fileFault((error as Error).message, pskFile), { cause: error });
  }
  return {
    ...(tls !== undefined && { tls }),
    ...(require !== undefined && { security: { require } }),
    ...(credential.length > 0 && { credentials: { session: () => ({ metadata: credential }) } }),
  };
}

const requiresTls = 'this server requires TLS on host:port addresses: give --ca, --psk-file or --tls';
const requiresCertificate =
  'this server accepts only clients with a certificate that it trusts: --cert and --key, signed by an authority that it has (its ca)';

/**
 * Names of options in errors of the library, and the flags that replace them in the command's errors. Some
 * texts come from the server, which may be of an older version, so the list contains their older forms, too.
 */
const inFlags: readonly (readonly [string, string])[] = [
  ['(option connectTimeoutMs of the channel)', '(--timeout)'],
  ['this server requires TLS on host:port addresses: give the channel the option tls', requiresTls],
  ['this server takes TLS on host:port addresses only: give the channel the option tls', requiresTls],
  ['this server takes TLS on host:port addresses only (option tls of the channel)', requiresTls],
  [
    'this server accepts only clients with a certificate that it trusts (option tls of the channel)',
    requiresCertificate,
  ],
  [
    'this server takes clients with a certificate that it trusts (option tls of the channel)',
    requiresCertificate,
  ],
  [
    'the server does not speak TLS at this address: give the server the option tls, or leave it out of this channel',
    'the server does not speak TLS at this address: leave out --tls, --ca, --cert, --key, --servername and --identity',
  ],
  [
    'give the channel such a key (option tls: psk of the channel)',
    'give the file of such a key (--psk-file)',
  ],
  [
    'give the server the same key in its option tls, or leave it out of this channel (option tls: psk of the channel)',
    'give the server the same key in its option tls, or leave out --psk-file',
  ],
  [
    'give the channel the authority of the certificate (ca) in place of the key (option tls: psk of the channel)',
    'give --ca in place of --psk-file',
  ],
  [
    'this channel expects a certificate: give the channel the same key (option tls: psk),',
    'a certificate is expected: give the file of the same key (--psk-file),',
  ],
  [
    'use tls or a unix socket, or allow it (credentials: { unsealed: true })',
    'use TLS (--ca, or --tls) or a unix socket',
  ],
  [
    'the server does not accept this client (option authenticate of the server)',
    'the server does not accept this client (its option authenticate): give --credential',
  ],
  ['(option tls: psk of the channel)', '(--psk-file)'],
  ['(option security.require)', '(--require)'],
  ['option tls of the channel', '--ca, --servername or --identity'],
];

/** Replaces options by flags in an error's text. */
export function withFlagsNamed(message: string): string {
  const flagged = message.replace(
    /option tls of the channel: (ca|servername or identity|identity)\b/,
    (_, names: string) => names.replace(/ca|servername|identity/g, '--$&'),
  );
  const found = inFlags.find(([options]) => flagged.includes(options));
  return found === undefined ? flagged : flagged.replace(found[0], () => found[1]);
}
