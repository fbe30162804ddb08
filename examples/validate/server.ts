/**
 * The server of the example. Requests that violate a rule of signup.proto never reach its handlers.
 */
import { createServer, type Server } from 'rdma-rpc';
import { validation } from 'rdma-rpc/validate';
import { SignupDefinition } from './gen/signup.rdma.ts';

export async function startServer(address: string): Promise<{ server: Server; address: string }> {
  const server = createServer().use(validation());
  let registered = 0;
  server.add(SignupDefinition, {
    register: () => ({ registered: ++registered }),
    async registerAll(requests) {
      for await (const _ of requests) ++registered;
      return { registered };
    },
  });
  return { server, address: await server.listen(address) };
}
