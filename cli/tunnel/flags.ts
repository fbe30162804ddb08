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
      .option(
        '--listen <address>',
        'beside the clients: accept their connections at this host:port or unix:/path',
      )
      .option(
        '--serve <address>',
        'beside the server program: accept listening ends at this host:port or unix:/path',
      )
      .requiredOption(
        '--to <address>',
        'with --listen: address of the serving end; with --serve: address of the server program',
      )
      .addOption(
        new Option(
          '--allow <identity>',
          'with --serve: identity of a listening end that is accepted, such as a SPIFFE id; may be repeated',
        )
          .argParser(collect)
          .default([], 'every listening end'),
      )
      .addOption(
        new Option('--fabric <name>', 'fabric to use; may be repeated, in order of preference')
          .choices([...fabricNames])
          .argParser((value: string, before: readonly string[]) => {
            if (!(fabricNames as readonly string[]).includes(value))
              throw new InvalidArgumentError(`Allowed choices are ${fabricNames.join(', ')}.`);
            return collect(value, before);
          })
          .default([], 'chosen automatically'),
      )
      .option('--metrics <host:port>', 'serve counters for Prometheus at http://HOST:PORT/metrics')
      .option(
        '--grace <ms>',
        'after SIGTERM or SIGINT: how long open connections may continue before they are reset',
        milliseconds,
        30_000,
      ),
    { own: 'this end', peer: 'the other end', dialing: 'with --listen: ' },
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
