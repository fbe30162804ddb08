/** A process of Node that does nothing: what a start costs in any case. */
import { cpuUs, tell } from './first.ts';

tell(cpuUs());
process.exit(0);
