/** Runs the worker of the group that things.ts opens. */
import { createServer } from 'rdma-rpc';
import { listenInWorker } from 'rdma-rpc/workers';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

listenInWorker(createServer().add(EchoDefinition, echoHandlers({ started: 0, aborted: [] })));
