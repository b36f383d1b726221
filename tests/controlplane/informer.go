package main

import (
	"flag"
	"fmt"
	"os"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// runInformer watches the CronJobs of a server with client-go's own informer and prints one line per event. It checks
// that a server works with an ordinary client.
func runInformer(args []string) {
	flags := flag.NewFlagSet("informer", flag.ExitOnError)
	server := flags.String("server", "", "the API server's URL")
	_ = flags.Parse(args)

	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: *server})
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Batch().V1().CronJobs().Informer()
	say := func(what string, object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		cronJob := object.(*batchv1.CronJob)
		fmt.Printf("%s %s/%s %s\n", what, cronJob.Namespace, cronJob.Name, cronJob.Spec.Schedule)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { say("add", object) },
		UpdateFunc: func(_, object any) { say("update", object) },
		DeleteFunc: func(object any) { say("delete", object) },
	})
	if err == nil {
		err = informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { fmt.Printf("error %v\n", err) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	cache.WaitForCacheSync(stop, informer.HasSynced)
	fmt.Printf("synced %d\n", len(informer.GetStore().ListKeys()))
	<-stop
}
