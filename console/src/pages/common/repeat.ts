import { pollIntervalMs } from "../../store";

/** Do `work`, and again `everyMs` after each time that it is done, or later while the page is hidden, until the returned function is called. */
export function repeat(work: () => Promise<void>, everyMs: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isStopped = false;
  const once = async (): Promise<void> => {
    await work();
    if (!isStopped) timer = setTimeout(() => void once(), pollIntervalMs(everyMs));
  };
  void once();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
