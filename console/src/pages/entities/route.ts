import type { PageRoute } from "../../app/routes";

const route: PageRoute = {
  path: "/entities/*",
  title: "Entities",
  group: "Details",
  order: 70,
  load: () => import("./index"),
};
export default route;
