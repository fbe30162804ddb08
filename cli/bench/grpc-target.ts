/**
 * A gRPC server as the target of `rdma-rpc bench`. It uses clients of grpc-js, which get TLS from the same
 * flags as our clients. bench.ts opens it.
 */
import { createSecureContext } from 'node:tls';
import type { ChannelCredentials, Client } from '@grpc/grpc-js';
import { checkOf } from '../../runtime/control/tls/tls-client.ts';
import type { ChannelTls } from '../../runtime/control/tls/tls-options.ts';
import type { AnyCall, Target, TargetOptions } from './target.ts';

interface Credentials {
  createFromSecureContext: typeof ChannelCredentials.createFromSecureContext;
}

function tlsCredentials(credentials: Credentials, tls: ChannelTls): ChannelCredentials {
  const { ca, cert, key, passphrase, identity } = tls;
  const context = createSecureContext({
    ...(ca !== undefined && { ca: ca as string }),
    ...(cert !== undefined && { cert: cert as string }),
    ...(key !== undefined && { key: key as string }),
    ...(passphrase !== undefined && { passphrase }),
  });
  const check = identity === undefined ? undefined : checkOf({ identity: [identity].flat() });
  return credentials.createFromSecureContext(
    context,
    check === undefined ? {} : { checkServerIdentity: check },
  );
}

/** Returns the error of grpc-js in parentheses, or '' when it reports none. */
function whyNone(client: Client): Promise<string> {
  const [none, deadline] = [() => Buffer.alloc(0), Date.now() + whyMs];
  return new Promise((resolve) => {
    client.makeUnaryRequest('/none/none', none, none, {}, { deadline }, (error) => {
      const [, why] = /Last error: (?:Error: )?(.+?)\. Resolution note/.exec(error?.details ?? '') ?? [];
      resolve(why === undefined ? '' : `: ${why}`);
    });
  });
}

const whyMs = 200;

/** Resolves when all connections are established. */
export async function openGrpc(asked: TargetOptions): Promise<Target> {
  const { address, connections, timeoutMs } = asked;
  const { Client, credentials } = await import('@grpc/grpc-js').catch((cause: unknown) => {
    throw new Error('--grpc needs the package @grpc/grpc-js: npm install --save-dev @grpc/grpc-js', {
      cause,
    });
  });
  const [
    { createGrpcClient },
    { RpcError },
    { Status },
    { ServerReflectionDefinition },
    { alphaReflection, eitherReflection },
  ] = await Promise.all([
    import('../../runtime/adapters/grpc/client.ts'),
    import('../../runtime/core/errors/rpc-error.ts'),
    import('../../runtime/core/errors/status.ts'),
    import('../../runtime/services/gen/grpc/reflection/v1/reflection.rdma.ts'),
    import('./grpc-reflection.ts'),
  ]);
  const tls = asked.security?.tls as ChannelTls | undefined;
  // grpc-js passes IP addresses as server names in its handshakes, and Node warns about this. The user cannot
  // do anything about this warning, so it is suppressed.
  if (tls !== undefined) Object.assign(process, { noDeprecation: true });
  const shown = tls === undefined ? credentials.createInsecure() : tlsCredentials(credentials, tls);
  const options = {
    ...(tls?.servername === undefined ? {} : { 'grpc.ssl_target_name_override': tls.servername }),
    // Without this option, clients of the same address share a connection.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_receive_message_length': -1,
    'grpc.max_send_message_length': -1,
  };
  const clients = Array.from({ length: connections }, () => new Client(address, shown, options));
  const close = async (): Promise<void> => {
    for (const client of clients) client.close();
  };
  const deadline = Date.now() + timeoutMs;
  const ready = clients.map(
    (client) =>
      new Promise<void>((resolve, reject) => {
        client.waitForReady(deadline, (error) => (error === undefined ? resolve() : reject(error)));
      }),
  );
  try {
    await Promise.all(ready);
  } catch (cause) {
    const why = await whyNone(clients[0]!);
    await close();
    throw new RpcError(
      Status.UNAVAILABLE,
      `no gRPC server ${tls === undefined ? 'without' : 'with'} TLS answers at ${address} within ${timeoutMs} ms (--timeout)${why}`,
      { processed: 'no', cause },
    );
  }
  const defaults = { '*': { timeoutMs } };
  const asks = [ServerReflectionDefinition, alphaReflection].map(
    (each) => createGrpcClient(each, clients[0]!, defaults).serverReflectionInfo,
  );
  const serverReflectionInfo = eitherReflection(asks[0]!, asks[1]!);
  return {
    reflection: { serverReflectionInfo, remedy: 'give --proto or --protoset' },
    transport: { protocol: 'grpc' },
    calls: (service) =>
      clients.map(
        (client) => (createGrpcClient(service, client, defaults) as unknown as { call: AnyCall }).call,
      ),
    stats: () => undefined,
    close,
  };
}
