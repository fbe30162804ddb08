/** A Node process that does nothing: the cost of a start in any case. */
import { cpuUs, tell } from './first.ts';

tell(cpuUs());
process.exit(0);
