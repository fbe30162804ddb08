/**
 * `rdma-rpc explain`: shows how a call of a given size is transferred between two fabrics of this machine,
 * and why. Without a size it shows which sizes are transferred in the same way.
 */
import { type Command, InvalidArgumentError, Option } from '#commander';
import type { DescMessage, DescMethod } from '#protobuf';
import { fabricNames } from '../../runtime/fabrics.ts';
import { messageBytes } from '../../runtime/limits.ts';
import { jsonText } from '../output.ts';
import { sayError } from '../server/connection.ts';
import { fromFiles, type Schema } from '../server/schema/schema.ts';
import { type DeclarationFlags, withSchema, withSchemaFlags } from '../server/schema-flags.ts';
import type { Carrier, Pair, Sides, Trial } from './trial.ts';

interface ExplainFlags extends DeclarationFlags {
  readonly size?: number;
  readonly responseSize?: number;
  readonly fabric: Trial['fabric'];
  readonly clientDevice?: string;
  readonly serverDevice?: string;
}

function size(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= messageBytes.default) return value;
  throw new InvalidArgumentError(`Give bytes from 0 to ${messageBytes.default}.`);
}

export function addExplainCommand(program: Command): void {
  withSchemaFlags(
    program
      .command('explain')
      .description(
        'make one call of a given size on a fabric of this machine, and explain how its messages were transferred, and why',
      )
      .argument(
        '[address]',
        'address of a server that describes the method by reflection; leave it out with --proto or --protoset; without any of them, each message is assumed to be one bytes field',
      )
      .argument(
        '[method]',
        'such as greeter.v1.Greeter/SayHello; default: the first method with a bytes field',
      )
      .option(
        '--size <bytes>',
        'size of the request; default: show for which sizes each way of transfer is used',
        size,
      )
      .option('--response-size <bytes>', 'size of the response; default: 0', size)
      .addOption(
        new Option('--fabric <name>', 'fabric between the two sides')
          .choices([...fabricNames])
          .default(fabricNames[0]),
      )
      .option('--client-device <name>', "verbs: the client's device; default: the first usable one")
      .option('--server-device <name>', "verbs: the server's device; default: the first usable one"),
  ).action(async (first: string | undefined, second: string | undefined, flags: ExplainFlags) => {
    const words = [first, second].filter((word) => word !== undefined);
    const last = words.at(-1);
    const path = last === undefined || last.includes(':') ? undefined : last;
    if (path?.includes('/') === false || (path === undefined && words.length > 1)) {
      sayError(new Error('give a method: Service/Method'), flags);
      process.exitCode = 2;
      return;
    }
    // Without a declaration, the method is assumed to have a field of type bytes.
    if (!fromFiles(flags) && words.length === (path === undefined ? 0 : 1)) {
      try {
        await show(path ?? anyMethod, ['bytes', 'bytes'], flags);
      } catch (error) {
        sayError(error, flags);
        process.exitCode = 1;
      }
      return;
    }
    await withSchema(words, flags, async (schema) => {
      const { findMethod } = await import('../server/schema/suggest.ts');
      const { method } = path === undefined ? await methodForBytes(schema) : await findMethod(schema, path);
      if (method.methodKind !== 'unary')
        throw new Error(
          `${method.parent.typeName}/${method.name} is a stream, whose messages travel in parts; explain makes unary calls`,
        );
      await show(
        `${method.parent.typeName}/${method.name}`,
        [carrierOf(method.input), carrierOf(method.output)],
        flags,
      );
    });
  });
}

const anyMethod = 'any method';
const scalarBytes = 12;

/**
 * A bytes field of the message itself has data that is sent in place. Fields of other types are copied, as
 * text is.
 */
const carrierOf = ({ fields }: DescMessage): Carrier =>
  fields.some((field) => field.scalar === scalarBytes) ? 'bytes' : 'text';

/** Returns the first method whose request has a field of type bytes. */
async function methodForBytes(schema: Schema): Promise<{ method: DescMethod }> {
  for (const name of await schema.services()) {
    const methods = (await schema.declaring(name))?.getService(name)?.methods ?? [];
    const method = methods.find(
      ({ input, methodKind }) => methodKind === 'unary' && carrierOf(input) === 'bytes',
    );
    if (method !== undefined) return { method };
  }
  throw new Error(`${schema.owner}: no method has a field for bytes; give one: Service/Method`);
}

const heading = (
  path: string,
  fabric: string,
  { clientDevice, serverDevice, exposure, security }: Sides,
): string =>
  `${path} over ${fabric}, ${clientDevice} to ${serverDevice}, memory shown by ${exposure}${security === 'sealed' ? ', sealed' : ''}`;

/** Shows the upper limit of each tier. */
async function showTiers(
  path: string,
  carriers: readonly [Carrier, Carrier],
  pair: Pair,
  json: boolean,
): Promise<void> {
  const [{ withPair }, { rangesText, tierRanges }, { tierOf }] = await Promise.all([
    import('./trial.ts'),
    import('./tiers.ts'),
    import('./text.ts'),
  ]);
  const request = await withPair(pair, carriers, async (call, sides) => ({
    sides,
    tiers: await tierRanges(async (bytes) => tierOf('request', (await call(bytes, 0)).request)),
  }));
  // Separate pairs are used, because the client expects responses as large as earlier responses, and provides
  // memory for them in advance.
  const response = {
    tiers: await tierRanges((bytes) =>
      withPair(pair, carriers, async (call) => tierOf('response', (await call(0, bytes)).response)),
    ),
  };
  const { clientDevice, serverDevice, exposure, security } = request.sides;
  if (json) {
    const tiers = { request: request.tiers, response: response.tiers };
    const { fabric } = pair;
    console.log(jsonText({ method: path, fabric, clientDevice, serverDevice, exposure, security, tiers }, 2));
    return;
  }
  const texts = [rangesText('request', request.tiers), rangesText('response', response.tiers)];
  console.log(
    [heading(path, pair.fabric, request.sides), '', ...texts, '', '--size and --response-size say why'].join(
      '\n',
    ),
  );
}

async function show(
  path: string,
  [request, response]: [Carrier, Carrier],
  flags: ExplainFlags,
): Promise<void> {
  const [{ runTrial }, { explained, messageText }] = await Promise.all([
    import('./trial.ts'),
    import('./text.ts'),
  ]);
  const { fabric, clientDevice, serverDevice, require } = flags;
  const pair = { fabric, clientDevice, serverDevice, require };
  if (flags.size === undefined && flags.responseSize === undefined)
    return showTiers(path, [request, response], pair, flags.json === true);
  const trial: Trial = {
    ...pair,
    request: { bytes: flags.size ?? 0, carrier: request },
    response: { bytes: flags.responseSize ?? 0, carrier: response },
  };
  const outcome = await runTrial(trial);
  const calls = outcome.calls.map((call) => ({
    request: explained('request', call.request, trial.request, outcome),
    response: explained('response', call.response, trial.response, outcome),
  }));
  const { exposure, security } = outcome;
  if (flags.json === true) {
    const sides = { clientDevice: outcome.clientDevice, serverDevice: outcome.serverDevice };
    console.log(jsonText({ method: path, fabric, ...sides, exposure, security, calls }, 2));
    return;
  }
  const [first, later] = calls;
  const text = (call: (typeof calls)[number]): string =>
    `${messageText('request', call.request)}\n${messageText('response', call.response)}`;
  const same = text(first!) === text(later!);
  console.log(
    [
      heading(path, fabric, outcome),
      ...(same
        ? ['', text(first!)]
        : ['', 'the first call:', text(first!), '', 'later calls:', text(later!)]),
    ].join('\n'),
  );
}
