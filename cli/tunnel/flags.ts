/** Flags of `rdma-rpc tunnel`, and the options of channels and servers that they set. */
import { type Command, InvalidArgumentError, Option } from '#commander';
import type { ChannelOptions } from '../../runtime/client/channel-options.ts';
import { parseAddress } from '../../runtime/control/socket/address.ts';
import { type ServerTls, tlsFiles } from '../../runtime/control/tls/tls-options.ts';
import { type Fabric, fabricNames } from '../../runtime/fabrics.ts';
import type { ServerOptions } from '../../runtime/server/server-options.ts';
import { passphraseOf, securityOf, type TlsFlags, withTlsFlags } from '../server/tls-flags.ts';

export interface TunnelFlags extends TlsFlags {
  readonly listen?: string;
  readonly serve?: string;
  readonly to: string;
  readonly allow: readonly string[];
  readonly fabric: readonly Fabric[];
  readonly metrics?: string;
  readonly grace: number;
}

const graceMaxMs = 86_400_000;

function milliseconds(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= graceMaxMs) return value;
  throw new InvalidArgumentError(`Give milliseconds from 0 to ${graceMaxMs}.`);
}

const collect = (value: string, before: readonly string[]): string[] => [...before, value];

export function withTunnelFlags(command: Command): Command {
  return withTlsFlags(
    command
      .option('--listen <address>', 'take connections of programs here: host:port or unix:/path')
      .option('--serve <address>', 'take connections of the other end here: host:port or unix:/path')
      .requiredOption(
        '--to <address>',
        'with --listen the other end, with --serve the program behind this end',
      )
      .option(
        '--allow <identity>',
        'with --serve: identity that the other end must have, such as a SPIFFE id; may be repeated',
        collect,
        [],
      )
      .addOption(
        new Option('--fabric <name>', 'fabric to use; may be repeated, in order of preference')
          .choices([...fabricNames])
          .argParser((value: string, before: readonly string[]) => {
            if (!(fabricNames as readonly string[]).includes(value))
              throw new InvalidArgumentError(`Allowed choices are ${fabricNames.join(', ')}.`);
            return collect(value, before);
          })
          .default([]),
      )
      .option('--metrics <host:port>', 'serve counts for Prometheus at /metrics')
      .option('--grace <ms>', 'how long SIGTERM lets open connections go on', milliseconds, 30_000),
  );
}

/** Throws a TypeError for flags that do not fit together. */
export function checkFlags({
  listen,
  serve,
  to,
  allow,
  tls,
  servername,
  identity,
  credential,
}: TunnelFlags): void {
  if ((listen === undefined) === (serve === undefined))
    throw new TypeError('give either --listen, where the programs are, or --serve, where the server is');
  if (listen !== undefined && allow.length > 0) throw new TypeError('--allow is for --serve');
  if (serve === undefined) return;
  parseAddress(to);
  const wrong = tls === true ? '--tls' : servername ? '--servername' : identity ? '--identity' : '';
  if (wrong !== '')
    throw new TypeError(`${wrong} is for --listen; with --serve give --cert and --key, or --psk-file`);
  if (credential.length > 0) throw new TypeError('--credential is for --listen');
}

const fabricOf = ({ fabric }: TunnelFlags): { fabric?: Fabric[] } =>
  fabric.length === 0 ? {} : { fabric: [...fabric] };

/** Options of the channel of a listening end. Throws a TypeError for files that cannot be used. */
export function channelOf(flags: TunnelFlags): ChannelOptions {
  return { ...fabricOf(flags), ...securityOf(flags), log: () => undefined };
}

/** Options of the server of a serving end. The files of its certificates are read again when they change. */
export function serverOf(flags: TunnelFlags): ServerOptions {
  const { cert, key, ca, passphraseFile, pskFile, allow, require } = flags;
  // Throws for combinations of flags that do not fit together.
  if (cert !== undefined || key !== undefined || passphraseFile !== undefined)
    securityOf({ ...flags, credential: [] });
  const files = {
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(ca !== undefined && { ca }),
    ...(pskFile !== undefined && { psk: pskFile }),
  };
  const hasTls = Object.keys(files).length > 0;
  return {
    ...fabricOf(flags),
    ...(hasTls && { tls: tlsFiles(files, passphraseOf(flags)) as () => ServerTls }),
    ...(allow.length > 0 && { allow: { identity: [...allow] } }),
    ...(require !== undefined && { security: { require } }),
  };
}
