/**
 * Runs as a client process of the tests. The process makes calls to the server at argv[3], and ends in the
 * way that argv[2] names.
 */
import { createChannel, createClient, type RpcError } from 'rdma-rpc';
import { EchoDefinition } from '../gen/echo.rdma.ts';

const [, , ending, address = ''] = process.argv;
// A stuck call ends the process with code 1 before its test runs out of time.
const channel = createChannel(address, { timeoutMs: 60_000 });
const client = createClient(EchoDefinition, channel);

/** Makes calls of every kind that will not be answered. */
function callsInFlight(): void {
  const ignore = (_: RpcError): void => undefined;
  client.behave({ text: 'hang' }).catch(ignore);
  client.behave({ text: 'hang', payload: new Uint8Array(1 << 20) }).catch(ignore);
  client.fetch({ number: 1 << 24 }).catch(ignore);
  for (let i = 0; i < 1000; ++i) client.echo({ number: i }).catch(ignore);
}

switch (ending) {
  case 'falls idle':
    // There is no close() here: the process must end by itself once it has the answer.
    console.log((await client.echo({ number: 42 })).number);
    break;
  case 'exits':
    await client.echo({});
    callsInFlight();
    process.exit(0);
    break;
  case 'exits in a callback':
    await client.echo({});
    callsInFlight();
    void client.echo({}).then(() => process.exit(0));
    break;
  case 'throws':
    await client.echo({});
    callsInFlight();
    setImmediate(() => {
      throw new Error('as planned');
    });
    break;
  case 'closes':
    await client.echo({});
    callsInFlight();
    await channel.close();
    break;
  case 'waits to be killed':
    await client.echo({});
    callsInFlight();
    await client.echo({});
    process.send?.('ready');
    break;
  default:
    throw new Error(`unknown ending ${ending}`);
}
