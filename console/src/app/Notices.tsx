import { Alert, AlertActionCloseButton, AlertGroup } from "@patternfly/react-core/dist/esm/components/Alert";

import { shown } from "../model/text";
import { closeNotice, useNotices } from "../store";

/** Notices other than errors disappear after this time. */
const TIMEOUT_MS = 8_000;

/** Shows the open notices; a screen reader reads each as it arrives. */
export function Notices() {
  const notices = useNotices().shown;
  return (
    <AlertGroup isToast isLiveRegion aria-label="Notices">
      {notices.map((notice) => (
        <Alert
          key={notice.id}
          variant={notice.kind}
          title={shown(notice.title, 300)}
          timeout={notice.kind === "danger" ? false : TIMEOUT_MS}
          onTimeout={() => closeNotice(notice.id)}
          actionClose={<AlertActionCloseButton onClose={() => closeNotice(notice.id)} />}
        >
          {notice.text !== undefined && shown(notice.text, 500)}
        </Alert>
      ))}
    </AlertGroup>
  );
}
