/**
 * Server and client of the example in one process: `node dist/examples/validate/main.js`. Prints the errors
 * that a client gets for violated rules.
 */
import { createChannel, createClient, RpcError } from 'rdma-rpc';
import { BadRequest } from 'rdma-rpc/details';
import { validation } from 'rdma-rpc/validate';
import { SignupDefinition } from './gen/signup.rdma.ts';
import { startServer } from './server.ts';

const { server, address } = await startServer('127.0.0.1:0');
const channel = createChannel(address);
const signup = createClient(SignupDefinition, channel);
const login = { case: 'password', value: 'correct horse battery' } as const;
const good = { email: 'ada@example.com', name: 'Ada', age: 36, interests: ['engines'], login };

console.log('registered:', (await signup.register(good)).registered);
try {
  await signup.register({ ...good, email: 'ada', age: 7, login: { case: undefined } });
} catch (error) {
  if (!(error instanceof RpcError)) throw error;
  console.log(error.codeName);
  for (const { fieldViolations } of error.findDetails(BadRequest))
    for (const { field, description, reason } of fieldViolations)
      console.log(`  ${field}: ${description} (${reason})`);
}

// The client checks the same rules, so an invalid request is not even sent.
const careful = createClient(SignupDefinition, channel, { '*': { interceptors: [validation()] } });
await careful.register({ ...good, name: 'A' }).catch((error: RpcError) => {
  console.log(`${error.codeName}, processed: ${error.processed}`);
});
await channel.close();
await server.shutdown();
