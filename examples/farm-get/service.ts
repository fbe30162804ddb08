/**
 * The server's side: it registers the table for READs and serves PUT. A GET does not reach this file, because
 * the server's CPU takes no part in it.
 */
import { RpcError, Status } from 'rdma-rpc';
import { Access, type CompletionQueue, type OpenOptions, openDevice, type QueuePair } from 'rdma-rpc/verbs';
import type { StoreHandlers } from './gen/farm.rdma.ts';
import { objectBytes } from './object.ts';
import { Table } from './table.ts';

export interface FarmOptions {
  /** `sim`, `shm`, `tcp` or an RDMA device. */
  readonly device: string;
  readonly open?: OpenOptions;
  readonly slots: number;
  readonly valueMax: number;
}

export interface Farm extends Disposable {
  readonly table: Table;
  readonly handlers: StoreHandlers;
}

/**
 * A READ has no completion on this side, so a server need not wait for one. On tcp, however, the process does
 * the work of its device, and it does this work while it waits.
 */
async function serve(cq: CompletionQueue): Promise<void> {
  for await (const _ of cq);
}

export function openFarm({ device: name, open = {}, slots, valueMax }: FarmOptions): Farm {
  const device = openDevice(name, open);
  const pd = device.allocPd();
  const cq = device.createCq();
  // Clients have only the right to READ, so they cannot change a value.
  const mr = pd.regMr(pd.allocBuffer(slots * objectBytes(valueMax)), Access.localWrite | Access.remoteRead);
  const table = new Table(mr.bytes, valueMax);
  const clients: QueuePair[] = [];
  if (name === 'tcp') void serve(cq);
  return {
    table,
    handlers: {
      open({ address }) {
        const qp = pd.createQp({ type: 'rc', cq, role: 'accept' });
        clients.push(qp);
        // This must not wait, because the client connects only when it has this response.
        qp.accept(Uint8Array.from(address)).catch(() => qp.close());
        return { address: qp.address, addr: mr.addr, rkey: mr.rkey, slots, valueMax };
      },
      put({ key, value }) {
        try {
          for (const _ of table.put(key, value)); // takes all steps at once
        } catch (error) {
          throw new RpcError(Status.INVALID_ARGUMENT, (error as Error).message);
        }
        return {};
      },
      get: ({ key }) => ({ value: table.get(key) ?? new Uint8Array() }),
    },
    [Symbol.dispose]() {
      for (const each of [...clients, mr, cq, pd, device]) each.close();
    },
  };
}
