/** `rdma-rpc health`: asks a server for its health, for scripts and for probes that run a command. */
import type { Command } from '#commander';
import { jsonText } from '../output.ts';
import { type ConnectionFlags, withServer, withTimeout } from './connection.ts';

export function addHealthCommand(program: Command): void {
  withTimeout(
    program
      .command('health')
      .description('ask a server for its health; exit code 0 only when it is serving')
      .argument('<address>', 'host:port or unix:/path')
      .argument('[service]', 'full name of a service; default: the server as a whole'),
  ).action((address: string, service = '', flags: ConnectionFlags) =>
    withServer(address, flags, async (channel) => {
      const { createClient } = await import('../../runtime/client/client.ts');
      const { HealthCheckResponse_ServingStatusNames: names, HealthDefinition } = await import(
        '../../runtime/services/gen/grpc/health/v1/health.rdma.ts'
      );
      const { RpcError } = await import('../../runtime/core/errors/rpc-error.ts');
      const { Status } = await import('../../runtime/core/errors/status.ts');
      const { status } = await createClient(HealthDefinition, channel)
        .check({ service })
        .catch((error: unknown) => {
          if (!(error instanceof RpcError) || error.code !== Status.UNIMPLEMENTED) throw error;
          const text = 'this server has no health service: addHealth(server) of rdma-rpc/health adds it';
          throw new RpcError(Status.UNIMPLEMENTED, text, { processed: 'no', cause: error });
        });
      const name = names[status] ?? `status ${status}`;
      console.log(flags.json === true ? jsonText({ service, status: name }) : name);
      return names[status] === 'SERVING' ? 0 : 1;
    }),
  );
}
